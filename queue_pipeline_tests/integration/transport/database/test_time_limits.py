"""Time limits: a network that falls silent, and a table that another session keeps locked, end in bounded time."""

import contextlib
import os
import socket
import threading
from urllib.parse import quote

import pyodbc
import pytest
from sqlalchemy import create_engine
from sqlalchemy.exc import DBAPIError

from queue_pipeline.errors import CommitUnknownError, DatabaseUnavailableError, LockTimeoutError
from queue_pipeline.transport import Operation, QueueTransport, new_message
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.odbc_drivers import packaged_sqlserver_driver
from queue_pipeline_tests.support.databases.backends import PYODBC
from queue_pipeline_tests.support.databases.partition import Partition
from queue_pipeline_tests.support.waiting import eventually

pytestmark = pytest.mark.both_drivers

CLIENT = {"keepalives_idle": 1, "keepalives_interval": 1, "keepalives_count": 1, "tcp_user_timeout": 2000}
SERVER = {"tcp_keepalives_idle": 1, "tcp_keepalives_interval": 1, "tcp_keepalives_count": 1, "tcp_user_timeout": 1500}
COMMIT = b"COMMIT\0"
USER_TIMEOUT = 18


@pytest.fixture
def partition(postgres):
    with Partition(postgres.port) as partition:
        yield partition


@pytest.fixture
def impatient(postgresql, postgres, partition):
    """A transport through the proxy, with limits of a second or two on both sides."""
    with QueueTransport(with_limits(postgresql.url, partition.port, postgres.port), schema=postgresql.schema) as made:
        made.install("orders", "billing")
        yield made


def with_limits(url, port, former_port, server=SERVER):
    options = " ".join(f"-c {name}={value}" for name, value in server.items())
    url = url.replace(f":{former_port}/", f":{port}/")
    if PYODBC in url:
        values = " ".join(f"{name}={value}" for name, value in CLIENT.items())
        return f"{url}?pqopt={quote(f'{values} options={chr(39)}{options}{chr(39)}')}"
    return f"{url}?{'&'.join(f'{name}={value}' for name, value in CLIENT.items())}&options={quote(options)}"


def claimed(transport, count=3):
    transport.send("orders", [new_message("{}") for _ in range(count)])
    return transport.claims.claim(transport.resolve("orders"), "run 1", 10)


# --- a network that falls silent ---------------------------------------------------------------------------


def test_a_claim_whose_commit_was_made_but_not_answered_is_completed_once(impatient, partition):
    claim = claimed(impatient)
    partition.cut_at(COMMIT, delivered=True)
    assert impatient.claims.complete(Completion(claim, [Operation("billing", new_message("{}"))], read=None)) == 1
    assert partition.cut.is_set()
    assert (impatient.peek("billing"), impatient.peek("orders"), impatient.claims.list()) == (1, 0, [])


def test_a_claim_whose_commit_never_arrived_is_completed_once_and_does_not_wait_for_its_lost_session(
    impatient, partition
):
    claim = claimed(impatient)
    partition.cut_at(COMMIT, delivered=False)
    assert impatient.claims.complete(Completion(claim, [Operation("billing", new_message("{}"))], read=None)) == 1
    assert partition.cut.is_set()
    assert (impatient.peek("billing"), impatient.peek("orders"), impatient.claims.list()) == (1, 0, [])


@pytest.mark.parametrize("delivered", [True, False])
def test_a_send_whose_commit_is_not_answered_is_reported_as_unknown(impatient, partition, delivered):
    partition.cut_at(COMMIT, delivered=delivered)
    with pytest.raises(CommitUnknownError):
        impatient.send("orders", new_message("{}"))
    assert impatient.peek("orders") == int(delivered)


def test_a_commit_on_a_session_lost_earlier_is_not_reported_as_done(impatient, partition):
    """psqlodbc has noticed that it is in no transaction any more, and its own commit would do nothing and succeed."""
    billing = impatient.resolve("billing").qualified
    with impatient.database.engine.connect() as connection:
        connection.begin()
        partition.end_after(b"INSERT 0 1\0")
        with contextlib.suppress(*impatient.database.driver_errors):
            connection.connection.driver_connection.cursor().execute(
                f"INSERT INTO {billing} (id, headers) VALUES (gen_random_uuid(), '{{}}')"
            )
        assert partition.cut.is_set()
        with pytest.raises(DBAPIError):
            connection.commit()
    assert impatient.peek("billing") == 0


def test_a_server_that_stops_answering_inside_a_statement_is_an_outage_and_no_message_is_lost(impatient, partition):
    impatient.send("orders", new_message("{}"))
    partition.cut_at(b"DELETE", delivered=True)
    with pytest.raises(DatabaseUnavailableError), impatient.receive("orders"):
        pass
    with impatient.receive("orders") as batch:
        assert len(batch.messages) == 1


def test_the_locks_of_a_session_whose_client_is_gone_are_released(impatient, partition, postgresql):
    """The client's process may be gone as well: no process tries again, and others must not wait."""
    claim = claimed(impatient)
    partition.cut_at(COMMIT, delivered=False)
    thread = threading.Thread(target=attempt, args=(lambda: impatient.claims.renew(claim),))
    thread.start()
    assert partition.cut.wait(20)
    eventually(lambda: postgresql.transport().claims.release(claim) is None)
    thread.join(20)


def test_a_long_statement_ends_when_its_client_is_gone(postgresql, postgres, partition):
    limits = {**SERVER, "client_connection_check_interval": 500}
    mark = f"pg_sleep(600), '{postgresql.schema}'"
    working = f"SELECT count(*) FROM pg_stat_activity WHERE state = 'active' AND query LIKE '%{postgresql.schema}''%'"
    working += " AND pid <> pg_backend_pid()"

    def sleep():
        with transport.transaction() as connection:
            connection.exec_driver_sql(f"SELECT {mark}")

    with QueueTransport(with_limits(postgresql.url, partition.port, postgres.port, limits)) as transport:
        partition.cut_at(b"pg_sleep", delivered=True)
        thread = threading.Thread(target=lambda: attempt(sleep))
        thread.start()
        eventually(lambda: postgres.run_sql(working) == "1")
        eventually(lambda: postgres.run_sql(working) == "0")
        thread.join(20)
        assert not thread.is_alive()


def attempt(work):
    with contextlib.suppress(DatabaseUnavailableError, DBAPIError):
        work()


# --- what applies by default -------------------------------------------------------------------------------


def server_settings(transport):
    with transport.transaction() as connection:
        rows = connection.exec_driver_sql("SELECT name, setting FROM pg_settings").all()
    return {name: setting for name, setting in rows}


def socket_options(port, *options):
    """Options of this process's socket to a server."""
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(int(number))) as found:
            if found.family == socket.AF_INET and found.getpeername()[1] == port:
                return [found.getsockopt(*option) for option in options]
    raise AssertionError("there is no such socket")


def test_by_default_a_silent_server_is_given_up_after_a_minute(postgresql, postgres, partition):
    url = postgresql.url.replace(f":{postgres.port}/", f":{partition.port}/")
    with QueueTransport(url, schema=postgresql.schema) as transport, transport.transaction():
        probes = [(socket.IPPROTO_TCP, option) for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, USER_TIMEOUT)]
        set_options = socket_options(partition.port, (socket.SOL_SOCKET, socket.SO_KEEPALIVE), *probes)
    assert set_options == [1, 30, 10, 60_000]


def test_by_default_the_server_gives_a_silent_client_up_before_that(postgresql):
    settings = server_settings(postgresql.transport())
    assert settings["lock_timeout"] == "15000"
    assert settings["tcp_keepalives_idle"] == "30"
    assert settings["tcp_user_timeout"] == "45000"
    assert settings["client_connection_check_interval"] == "10000"
    assert settings["idle_in_transaction_session_timeout"] == "3600000"
    assert settings["statement_timeout"] == "0"


def test_limits_of_the_setting_win(impatient):
    settings = server_settings(impatient)
    assert {name: settings[name] for name in SERVER} == {name: str(value) for name, value in SERVER.items()}
    assert settings["lock_timeout"] == "15000"


def test_limits_of_the_role_win(postgresql, postgres):
    postgres.run_sql("ALTER ROLE queue_pipeline SET lock_timeout = 0")
    postgres.run_sql("ALTER ROLE queue_pipeline SET idle_in_transaction_session_timeout = '7s'")
    try:
        settings = server_settings(postgresql.transport())
    finally:
        postgres.run_sql("ALTER ROLE queue_pipeline RESET ALL")
    assert (settings["lock_timeout"], settings["idle_in_transaction_session_timeout"]) == ("0", "7000")


def test_an_engine_of_the_callers_gets_the_limits_of_the_session(postgresql):
    engine = create_engine(QueueTransport(postgresql.url).database.engine.url)
    try:
        assert server_settings(QueueTransport(engine))["lock_timeout"] == "15000"
    finally:
        engine.dispose()


# --- a table that another session keeps locked -------------------------------------------------------------


@pytest.fixture
def locked(postgresql, postgres):
    """A transport that waits for locks for a moment, and whose queue another session has locked."""
    url = with_limits(postgresql.url, postgres.port, postgres.port, {"lock_timeout": 200})
    with QueueTransport(url, schema=postgresql.schema) as transport:
        transport.install("orders", "billing")
        transport.send("orders", new_message("{}"))
        with postgresql.transport().transaction() as other:
            other.exec_driver_sql(f"LOCK TABLE {transport.resolve('orders').qualified} IN ACCESS EXCLUSIVE MODE")
            yield transport


def receive(transport):
    with transport.receive("orders"):
        pass


@pytest.mark.parametrize(
    "work",
    [
        pytest.param(lambda own: own.peek("orders"), id="peek"),
        pytest.param(lambda own: own.send("orders", new_message("{}")), id="send"),
        pytest.param(receive, id="receive"),
        pytest.param(lambda own: own.claims.claim(own.resolve("orders"), "run 1", 10), id="claim"),
    ],
)
def test_a_locked_queue_is_a_clear_error(locked, work):
    with pytest.raises(LockTimeoutError, match=r"orders.*another session holds a lock.*lock timeout.*end it"):
        work(locked)
    assert locked.database.engine.pool.checkedout() == 0


def test_other_queues_go_on_while_one_is_locked(locked):
    locked.send("billing", new_message("{}"))
    assert locked.peek("billing") == 1


def test_the_results_of_a_claim_wait_longer_for_a_lock(postgresql, postgres):
    url = with_limits(postgresql.url, postgres.port, postgres.port, {"lock_timeout": 200})
    with QueueTransport(url, schema=postgresql.schema) as transport, contextlib.ExitStack() as lock:
        transport.install("orders", "billing")
        claim, tries = claimed(transport), []
        other = lock.enter_context(postgresql.transport().transaction())
        other.exec_driver_sql(f"LOCK TABLE {transport.resolve('billing').qualified} IN ACCESS EXCLUSIVE MODE")

        def work(connection):
            tries.append(connection)
            if len(tries) == 2:
                lock.close()

        assert (
            transport.claims.complete(Completion(claim, [Operation("billing", new_message("{}"))], work, read=None))
            == 1
        )
        assert (len(tries), transport.peek("billing"), transport.claims.list()) == (2, 1, [])


def test_results_that_cannot_be_written_for_a_lock_stay_a_claim(postgresql, postgres):
    url = with_limits(postgresql.url, postgres.port, postgres.port, {"lock_timeout": 200})
    with QueueTransport(url, schema=postgresql.schema) as transport:
        transport.install("orders", "billing")
        claim = claimed(transport)
        with postgresql.transport().transaction() as other:
            other.exec_driver_sql(f"LOCK TABLE {transport.resolve('billing').qualified} IN ACCESS EXCLUSIVE MODE")
            with pytest.raises(LockTimeoutError, match="billing"):
                transport.claims.complete(Completion(claim, [Operation("billing", new_message("{}"))], read=None))
        assert [status.claim_id for status in transport.claims.list()] == [claim.claim_id]
        assert transport.claims.complete(Completion(claim, [Operation("billing", new_message("{}"))], read=None)) == 1


# --- SQL Server's drivers, without a server ----------------------------------------------------------------


@pytest.mark.parametrize("name", ["FreeTDS", "Microsoft's"])
def test_drivers_of_sql_server_probe_a_silent_server_by_themselves(name):
    driver = "FreeTDS" if name == "FreeTDS" else packaged_sqlserver_driver()
    if driver is None or (name == "FreeTDS" and name not in pyodbc.drivers()):
        pytest.skip(f"needs {name} driver for SQL Server, which is not installed")
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        url = f"mssql://a:b@127.0.0.1:{port}/db?driver={quote(driver)}&Encrypt=no&timeout=3"
        with QueueTransport(url) as transport:
            thread = threading.Thread(target=attempt, args=(lambda: transport.peek("orders"),))
            thread.start()
            client, _ = server.accept()
            probes = [(socket.IPPROTO_TCP, option) for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL)]
            wanted = [1, 40, 2] if name == "FreeTDS" else [1, 30, 1]
            options = [(socket.SOL_SOCKET, socket.SO_KEEPALIVE), *probes]
            eventually(lambda: socket_options(port, *options) == wanted)
            client.close()
            thread.join(20)
