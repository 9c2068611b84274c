"""A destination that refuses a message fails that message alone: the queue that it waits in stays receivable."""

from datetime import timedelta

import pytest

from queue_pipeline.errors import (
    DatabaseError,
    DatabaseUnavailableError,
    QueueNotFoundError,
    TransientDatabaseError,
)
from queue_pipeline.transport import TransactionMode, new_message
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.operations.install import InstallOptions
from queue_pipeline.transport.transport import QueueTransport
from queue_pipeline_tests.support.databases.backends import run_sql

ALL, LONG = [b"a", b"b", b"long"], [b"long"]
REFUSE = """CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
IF octet_length(NEW.body) > 3 THEN RAISE EXCEPTION 'too long for us'; END IF;
RETURN NEW; END $$"""
CALL = "FOR EACH ROW EXECUTE FUNCTION {schema}.refuse()"
NO_QUEUE = ["DROP TABLE {billing}", "CREATE TABLE {billing} (other int)"], ALL
OBSTACLES = {
    ("sqlite", "no queue"): NO_QUEUE,
    ("sqlite", "a view"): (["DROP TABLE {billing}", "CREATE VIEW {billing} AS SELECT 1 AS Id"], ALL),
    ("sqlite", "a trigger"): (
        [
            "CREATE TRIGGER refuse BEFORE INSERT ON {billing} WHEN length(NEW.Body) > 3 "
            "BEGIN SELECT RAISE(ABORT, 'too long for us'); END"
        ],
        LONG,
    ),
    ("sqlserver", "no queue"): NO_QUEUE,
    ("sqlserver", "a check"): (["ALTER TABLE {billing} ADD CHECK (DATALENGTH(Body) <= 3)"], LONG),
    ("postgresql", "no queue"): NO_QUEUE,
    ("postgresql", "a view"): (["DROP TABLE {billing}", "CREATE VIEW {billing} AS SELECT 1 AS id UNION SELECT 2"], ALL),
    ("postgresql", "no right"): ([], ALL),
    ("postgresql", "a check"): (["ALTER TABLE {billing} ADD CHECK (octet_length(body) <= 3)"], LONG),
    ("postgresql", "a trigger"): ([REFUSE, "CREATE TRIGGER refuse BEFORE INSERT ON {billing} " + CALL], LONG),
    ("postgresql", "a late check"): (
        [
            REFUSE,
            "CREATE CONSTRAINT TRIGGER refuse AFTER INSERT ON {billing} DEFERRABLE INITIALLY DEFERRED " + CALL,
        ],
        LONG,
    ),
}


@pytest.fixture(params=sorted({kind for _, kind in OBSTACLES}))
def obstacle(request, backend, transport):
    """The queue `billing` refuses messages; which ones, and the transport of an account to which that happens."""
    if (backend.name, request.param) not in OBSTACLES:
        pytest.skip(f"{backend.name} has no such obstacle: {request.param}")
    transport.install("billing")
    refused = raise_obstacle(backend, transport, request.param)
    if request.param != "no right":
        return refused, transport
    cluster, role = request.getfixturevalue("postgres"), f"forwards_{backend.schema}"
    cluster.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    transport.install("orders", options=InstallOptions(grant_to=role))
    limited = QueueTransport(cluster.url(user=role, password="pw"), schema=backend.schema)
    request.addfinalizer(limited.close)
    return refused, limited


def raise_obstacle(backend, transport, kind):
    statements, refused = OBSTACLES[backend.name, kind]
    for statement in statements:
        billing = transport.resolve("billing").qualified
        backend.sql(transport, statement.format(billing=billing, schema=backend.schema))
    return refused


def for_billing(transport):
    return {wire.FORWARD_DESTINATION: transport.resolve("billing").canonical}


def fill(transport):
    """What a mover of another kind leaves: messages for billing before and after one of the queue's own."""
    headers = for_billing(transport)
    transport.send("orders", [new_message(body, headers=headers) for body in ("a", "long")])
    transport.send("orders", new_message("own"))
    transport.send("orders", new_message("b", headers=headers))


def check(transport, refused):
    """What was refused is in the error queue with the reason, the rest in billing, and nothing is left."""
    failed = transport.show("error")
    assert sorted(shown.body for shown in failed) == refused
    for shown in failed:
        assert shown.headers[wire.FAILED_QUEUE] == transport.resolve("billing").canonical
        reason = shown.headers[wire.EXCEPTION_MESSAGE]
        assert "billing" in reason or "too long for us" in reason
        assert wire.FORWARD_DESTINATION not in shown.headers
    if refused == LONG:
        assert [shown.body for shown in transport.show("billing")] == [b"a", b"b"]
    assert transport.peek("orders") == 0


def test_a_claim_passes_over_what_is_refused(transport, obstacle):
    refused, limited = obstacle
    fill(transport)
    claim = limited.claim("orders", "me", 100)
    assert (claim.messages, claim.forwarded) == (1, 3)
    check(transport, refused)
    assert limited.claim("orders", "me", 100) is None
    limited.claims.give_back(claim)
    assert [shown.body for shown in transport.show("orders")] == [b"own"]


def test_a_receive_passes_over_what_is_refused(transport, obstacle):
    refused, limited = obstacle
    fill(transport)
    with limited.receive("orders", mode=TransactionMode.UNRELIABLE) as batch:
        assert [message.body for message in batch] == [b"own"]
    assert batch.forwarded == 3
    check(transport, refused)


@pytest.mark.parametrize("mode", list(TransactionMode))
def test_a_receive_sends_what_is_refused_to_the_error_queue_and_forwards_the_rest(transport, backend, mode):
    transport.install("billing")
    raise_obstacle(backend, transport, "no queue")
    fill(transport)
    with transport.receive("orders", mode=mode) as batch:
        assert [message.body for message in batch] == [b"own"]
    assert batch.forwarded == 3
    check(transport, ALL)


@pytest.mark.parametrize("mode", [TransactionMode.SENDS_ATOMIC_WITH_RECEIVE, TransactionMode.TRANSACTION_SCOPE])
def test_a_refusal_at_the_commit_fails_one_receive_and_the_next_passes(postgresql, mode):
    transport = postgresql.transport()
    transport.install("orders", "billing")
    raise_obstacle(postgresql, transport, "a late check")
    fill(transport)
    with pytest.raises(DatabaseError, match="too long for us"), transport.receive("orders", mode=mode) as batch:
        assert len(batch) == 1
    with transport.receive("orders", mode=mode) as batch:
        assert [message.body for message in batch] == [b"own"]
    check(transport, LONG)


def test_a_mover_sends_what_is_refused_to_the_error_queue_and_moves_the_rest(transport, backend, obstacle):
    refused, limited = obstacle
    sender = backend.transport(endpoint="orders")
    for queue, body in (("billing", "a"), ("billing", "long"), ("orders", "own"), ("billing", "b")):
        sender.send(queue, new_message(body, delay=timedelta(seconds=-1)))
    assert limited.move_due(limited.resolve("orders")) == 4
    assert [shown.body for shown in transport.show("orders")] == [b"own"]
    with limited.receive("orders"):
        pass
    check(transport, refused)


def test_an_error_queue_that_refuses_too_is_named_and_the_message_stays(transport, backend):
    """Nothing is moved into the queue where every receive would fail."""
    backend.sql(transport, f"DROP TABLE {transport.resolve('error').qualified}")
    sender = backend.transport(endpoint="orders")
    transport.install("billing", plain_queues=[])
    sender.send("billing", new_message("a", delay=timedelta(seconds=-1)))
    raise_obstacle(backend, transport, "no queue")
    with pytest.raises(QueueNotFoundError, match=r"queue .*error.* does not exist"):
        transport.move_due(transport.resolve("orders"))
    assert transport.status("orders")[0].delayed == 1
    transport.send("orders", new_message("own"))
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"own"]


def test_a_queue_that_is_locked_is_no_refusal(postgresql):
    """Another session alters billing: the messages wait, and none of them fails."""
    other = postgresql.transport()
    other.install("orders", "billing")
    with QueueTransport(f"{postgresql.url}?options=-c%20lock_timeout%3D50", schema=postgresql.schema) as transport:
        fill(transport)
        with other.transaction() as connection:
            run_sql(connection, f"LOCK TABLE {transport.resolve('billing').qualified} IN ACCESS EXCLUSIVE MODE")
            with pytest.raises((DatabaseUnavailableError, TransientDatabaseError)):
                transport.claim("orders", "me", 100)
            with pytest.raises((DatabaseUnavailableError, TransientDatabaseError)), transport.receive("orders"):
                pass
        assert (transport.peek("orders"), transport.peek("error")) == (4, 0)
        assert transport.claim("orders", "me", 100).forwarded == 3


def test_refusals_are_logged_in_one_line_per_cause(transport, backend, caplog):
    transport.install("billing")
    raise_obstacle(backend, transport, "no queue")
    transport.send("orders", [new_message(str(n), headers=for_billing(transport)) for n in range(5)])
    assert transport.claim("orders", "me", 100) is None
    (line,) = [record.message for record in caplog.records if "not taken by their destination" in record.message]
    first = transport.show("error")[0].headers[wire.MESSAGE_ID]
    assert "5 messages, DatabaseError: " in line and f"{first}: queue " in line and line.endswith("; and 2 more")
