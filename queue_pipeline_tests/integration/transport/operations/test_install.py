import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_pipeline.errors import AccessDeniedError, AddressError, ConfigurationError, QueuePipelineError
from queue_pipeline.transport import InstallOptions, Operation, QueueTransport, new_message
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.operations.install import script, steps
from queue_pipeline_tests.support.databases.backends import run_sql

ROLE_PASSWORD = "only-for-this-test"


def script_of(dialect, *names, **options):
    chosen = DIALECTS[dialect]
    book = AddressBook(chosen)
    return script(chosen, steps(book, [book.resolve(name) for name in names], [], InstallOptions(**options)))


def test_installing_again_changes_nothing(transport):
    transport.send("orders", new_message("kept"))
    again = transport.install("orders")
    assert [installed.created for installed in again] == [False] * len(again)
    assert transport.peek("orders") == 1


def test_what_belongs_to_a_queue_is_created_with_it(backend):
    transport = backend.transport()
    made = transport.install("orders")
    shared = ["QueueClaims", "QueueOutbox", "QueuePauses", "QueueFailures", "QueueSlots"]
    shared += ["SubscriptionRouting"]
    expected = ["orders", "orders.Delayed", "orders.Claimed", "error", *shared]
    assert [installed.table for installed in made] == [transport.book.own(name).canonical for name in expected]
    assert all(installed.created for installed in made)


def test_concurrent_installers_do_not_collide(backend):
    """Sixteen at once, each on a connection of its own: every table is there once and works."""
    transports = [backend.transport() for _ in range(4 if backend.name == "sqlserver" else 16)]
    with ThreadPoolExecutor(len(transports)) as threads:
        results = list(threads.map(lambda transport: transport.install("orders", "billing"), transports))
    for table in zip(*results, strict=True):
        assert sum(installed.created for installed in table) == 1
    transports[0].send("billing", new_message("{}"))
    assert transports[1].peek("billing") == 1


def test_a_script_run_by_another_user_makes_working_queues(backend):
    """What `script` prints is what `install` runs."""
    transport = backend.transport()
    queues = [transport.resolve(name) for name in ("orders", "billing")]
    made = steps(transport.book, queues, [transport.resolve("error")], InstallOptions())
    text = script(transport.database.dialect, made)
    with transport.transaction() as connection:
        for statement in transport.database.dialect.split_script(strip_comments(text)):
            run_sql(connection, statement)
    assert not any(installed.created for installed in transport.install("orders", "billing"))
    transport.send("orders", new_message("{}"))
    assert transport.claims.claim(queues[0], "me", 1).messages == 1


def test_the_script_for_sql_server_has_the_documented_structure():
    text = script_of("sqlserver", "orders")
    for fragment in (
        "CREATE TABLE [dbo].[orders] (",
        "[Headers] nvarchar(max) NOT NULL",
        "[RowVersion] bigint IDENTITY(1, 1) NOT NULL",
        "CREATE CLUSTERED INDEX [Index_RowVersion] ON [dbo].[orders] ([RowVersion] ASC)",
        "CREATE NONCLUSTERED INDEX [Index_Expires] ON [dbo].[orders] ([Expires] ASC) INCLUDE ([Id], [RowVersion]);",
        "[dbo].[orders.Delayed]",
        "\nGO\n",
    ):
        assert fragment in text
    heap = script_of("sqlserver", "orders", heap=True)
    assert "CREATE NONCLUSTERED INDEX [Index_RowVersion]" in heap
    assert "WHERE [Expires] IS NOT NULL" in heap


def test_names_with_quotes_stay_names_in_a_script():
    text = script_of("sqlserver", "it's [odd]")
    assert "N'[dbo].[it''s [odd]]]'" in text
    assert 'CREATE TABLE IF NOT EXISTS "public"."a""b"' in script_of("postgresql", '"a""b"')


def test_grants_cover_what_run_time_needs():
    text = script_of("postgresql", "orders", grant_to="app role")
    assert 'GRANT SELECT, INSERT, UPDATE, DELETE ON "public"."orders" TO "app role"' in text
    assert 'GRANT USAGE ON SEQUENCE "public"."orders_seq_seq" TO "app role"' in text
    assert 'ON "public"."QueueClaims" TO "app role"' in text
    assert 'ON "public"."QueuePauses" TO "app role"' in text
    assert "TO [app]" in script_of("sqlserver", "orders", grant_to="app")


def test_an_account_that_can_only_read_and_write_can_do_everything_else(postgresql, postgres):
    """Install is separate from run time: the role below owns nothing and may create nothing."""
    role = f"runtime_{postgresql.schema}"
    postgres.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD '{ROLE_PASSWORD}'")
    postgresql.transport().install("orders", "billing", options=InstallOptions(grant_to=role))
    postgresql.transport().install(plain_queues=["error"], options=InstallOptions(grant_to=role))
    runtime = QueueTransport(postgres.url(user=role, password=ROLE_PASSWORD), schema=postgresql.schema)
    with runtime:
        runtime.send("orders", [new_message(str(n)) for n in range(10)])
        assert runtime.peek("orders") == 10
        with runtime.receive("orders", 2) as batch:
            batch.send([Operation("billing", new_message("result"))])
        claim = runtime.claims.claim(runtime.resolve("orders"), "me", 5)
        first, second = runtime.claims.split(claim, 2)
        runtime.claims.renew(first)
        assert sum(batch.num_rows for batch in runtime.claim_reader.read(first)) == 2
        assert runtime.claims.complete(Completion(first, [Operation("billing", new_message("result"))], read=None)) == 1
        adopted = runtime.claims.adopt(second, "you")
        assert runtime.claims.release_owner("you") == [adopted]
        assert runtime.claims.waiting() == {runtime.resolve("orders").canonical: 3}
        assert runtime.pauses.pause("p", "me") and runtime.pauses.list() and runtime.pauses.resume("p")
        runtime.claims.give_back(runtime.claims.claim(runtime.resolve("orders"), "me", 5))
        assert runtime.move_due(runtime.resolve("orders")) == 0
        assert runtime.purge("orders") == 0
        assert runtime.audit_indexes("orders") == []
        assert [status.pending for status in runtime.status("billing", "orders")] == [2, 6]
        with pytest.raises(AccessDeniedError, match="permission denied"):
            runtime.install("more")


@pytest.mark.parametrize("name", ["q" * 48, "ü" * 24])
def test_a_name_too_long_for_postgresql_is_refused_before_anything_is_created(postgresql, name):
    transport = postgresql.transport()
    with pytest.raises(AddressError, match=r"48 bytes.*room for 47"):
        transport.install("fine", name)
    assert transport.status() == []
    transport.install("q" * 47)
    transport.send("q" * 47, new_message("{}"))
    assert transport.peek("q" * 47) == 1


def test_a_missing_schema_is_an_error_that_names_the_table(postgresql):
    transport = QueueTransport(postgresql.url, schema="no_such_schema")
    with transport, pytest.raises(QueuePipelineError, match="no_such_schema"):
        transport.install("orders")


def test_options_that_a_database_does_not_have_are_refused(sqlite):
    with pytest.raises(ConfigurationError, match="heap"):
        sqlite.transport().install("orders", options=InstallOptions(heap=True))
    with pytest.raises(ConfigurationError, match="accounts"):
        sqlite.transport().install("orders", options=InstallOptions(grant_to="me"))


def test_the_advisory_lock_is_the_one_that_dotnet_installers_take():
    """SHA-256 over UTF-16LE of `"public"."Sales"`, first eight bytes, little-endian."""
    import hashlib

    digest = hashlib.sha256('"public"."Sales"'.encode("utf-16-le")).digest()
    key = int.from_bytes(digest[:8], "little", signed=True)
    assert DIALECTS["postgresql"].installer_lock('"public"."Sales"') == key


def test_importing_the_transport_opens_nothing():
    code = "import queue_pipeline.transport as t; t.QueueTransport('postgresql://u:p@127.0.0.1:1/db'); print('ok')"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "ok\n"


def strip_comments(text):
    return "\n".join(line for line in text.splitlines() if not line.startswith("--"))
