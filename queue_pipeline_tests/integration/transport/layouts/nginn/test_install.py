"""The tables of NGinn queues, as a .NET process beside us expects them."""

import threading

import pytest

from queue_pipeline.errors import AccessDeniedError, ConfigurationError, QueueNotFoundError
from queue_pipeline.transport import InstallOptions, QueueTransport
from queue_pipeline.transport import transport as transport_module
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.operations.install import script, steps
from queue_pipeline_tests.support.nginn.nginn_bus import (
    BILLING,
    COLUMNS,
    ORDERS,
    SENDER,
    Bus,
    body_of,
    placed,
    settings,
)

ROLE_PASSWORD = "run-time"
INDEX = "IDX_Orders_subqueue_retry_time"


def columns(bus, table):
    """Name, type and whether NULL is allowed, in their order."""
    if bus.backend.name == "sqlite":
        rows = bus.sql(f"SELECT name, type, 1 - \"notnull\" FROM pragma_table_info('{table}') ORDER BY cid")
    else:
        found = "character_maximum_length AS width FROM information_schema.columns"
        rows = bus.sql(
            f"SELECT column_name, data_type, CASE WHEN is_nullable = 'YES' THEN 1 ELSE 0 END, {found} "
            "WHERE table_schema = ? AND table_name = ? ORDER BY ordinal_position",
            (bus.backend.schema, table),
        )
    return [tuple(row) for row in rows]


def script_of(dialect, *queues, nginn=None, **options):
    book = AddressBook(DIALECTS[dialect], nginn=nginn or settings())
    resolved = [book.resolve(queue) for queue in queues]
    return script(DIALECTS[dialect], steps(book, resolved, [], InstallOptions(**options)))


def test_a_queue_has_the_columns_of_the_reference_in_its_order(bus):
    found = columns(bus, "Orders")
    assert [column[0] for column in found] == list(COLUMNS)
    nullable = [column[0] for column in found if column[2]]
    optional = ["last_processed", "error_info", "correlation_id", "label", "msg_text", "msg_headers", "unique_id"]
    # SQLite never has NULL in a key of this kind, and does not say so.
    assert [name for name in nullable if name != "id"] == optional


def test_the_columns_are_as_wide_as_those_of_the_reference(bus):
    if bus.backend.name == "sqlite":
        pytest.skip("needs columns of a limited width, which SQLite does not have")
    widths = {column[0]: column[3] for column in columns(bus, "Orders") if column[0] in COLUMNS[1:4] + COLUMNS[9:11]}
    assert widths == {
        "from_endpoint": 50,
        "to_endpoint": 50,
        "subqueue": 1,
        "correlation_id": 100,
        "label": 100,
    }


def test_ids_are_counted_up_and_never_given_twice(bus):
    bus.send(3)
    assert [row["id"] for row in bus.rows()] == [1, 2, 3]
    bus.execute(f"DELETE FROM {bus.table(ORDERS)}")
    bus.send(1)
    assert [row["id"] for row in bus.rows()] == [4]


def test_the_table_of_subscriptions_has_the_columns_of_the_reference(bus):
    assert [column[0] for column in columns(bus, "NGMB_Subscriptions")] == [
        "publisher_endpoint",
        "subscriber_endpoint",
        "message_type",
        "created_date",
        "expiration_date",
    ]


def test_the_table_of_sequences_has_the_columns_of_the_reference(backend):
    transport = backend.transport(nginn=settings(sequences=True))
    transport.install(ORDERS)
    found = columns(Bus(backend, transport), "NGMB_SequenceInfo")
    assert [column[0] for column in found] == ["id", "data", "last_modified"]


def test_installing_again_changes_nothing(bus):
    bus.send(2)
    before = bus.rows()
    again = bus.transport.install(ORDERS, BILLING, SENDER)
    assert not any(made.created for made in again)
    assert bus.rows() == before


def test_a_table_that_a_dotnet_process_made_gets_the_missing_tables_beside_it(backend):
    transport = backend.transport(nginn=settings())
    transport.install(plain_queues=[ORDERS])
    bus = Bus(backend, transport)
    bus.insert(body_of(1))
    made = {one.table: one.created for one in transport.install(ORDERS, plain_queues=[])}
    assert made[ORDERS] is False
    claim = transport.claim(ORDERS, "me", 10)
    assert claim.messages == 1


def test_two_installers_at_once_do_no_harm(backend):
    failures = []

    def install():
        try:
            backend.transport(nginn=settings()).install(ORDERS)
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=install) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    transport = backend.transport(nginn=settings())
    assert transport.send(ORDERS, placed(1)) == 1


def test_the_script_for_sql_server_is_the_references_own_table():
    text = script_of("sqlserver", ORDERS)
    for fragment in (
        "[id] bigint IDENTITY(1, 1) NOT NULL",
        "[from_endpoint] varchar(50) NOT NULL",
        "[to_endpoint] varchar(50) NOT NULL",
        "[subqueue] char(1) NOT NULL",
        "[retry_time] datetime NOT NULL",
        "[error_info] text NULL",
        "[msg_text] varchar(max) NULL",
        "[unique_id] varchar(40) NULL",
        "CONSTRAINT [PK_Orders] PRIMARY KEY CLUSTERED ([id] ASC)",
        f"CREATE NONCLUSTERED INDEX [{INDEX}] ON [dbo].[Orders] ([subqueue] ASC, [retry_time] ASC) INCLUDE ([id])",
        "[dbo].[Orders.Claimed]",
        "[dbo].[NGMB_Subscriptions]",
        "\nGO\n",
    ):
        assert fragment in text
    assert "NGMB_SequenceInfo" not in text
    assert "Orders.Delayed" not in text


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_the_shared_tables_have_the_names_of_the_settings(dialect):
    nginn = settings(sequences=True, sequences_table="Seqs", subscriptions_table="NGinnMessageBus_Subscriptions")
    text = script_of(dialect, ORDERS, nginn=nginn)
    assert "Seqs" in text
    assert "NGinnMessageBus_Subscriptions" in text
    assert "NGMB" not in text


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_a_plain_queue_needs_no_tables_of_nginn(dialect):
    text = script_of(dialect, "orders")
    assert "subqueue" not in text
    assert "NGMB" not in text


def test_the_script_of_sqlite_makes_a_queue_that_works(sqlite):
    import sqlite3

    path = sqlite.url.removeprefix("sqlite:///")
    connection = sqlite3.connect(path)
    connection.executescript(script_of("sqlite", ORDERS))
    connection.close()
    bus = Bus(sqlite, sqlite.transport(nginn=settings()))
    bus.send(1)
    bus.transport.claims.complete(Completion(bus.transport.claim(ORDERS, "me", 1), read=None))
    assert bus.subqueues() == "X"


def drop_index(bus):
    statement = {
        "sqlite": f'DROP INDEX "{INDEX}"',
        "postgresql": f'DROP INDEX {bus.backend.schema}."{INDEX}"',
        "sqlserver": f"DROP INDEX [{INDEX}] ON [{bus.backend.schema}].[Orders]",
    }[bus.backend.name]
    bus.execute(statement)


def test_the_audit_finds_a_missing_index_and_its_statement_fixes_it(bus):
    assert bus.transport.audit_indexes(ORDERS, BILLING) == []
    drop_index(bus)
    (finding,) = bus.transport.audit_indexes(ORDERS, BILLING)
    assert (finding.queue, finding.code) == (ORDERS, "missing_subqueue_index")
    assert INDEX in str(finding)
    bus.execute(finding.fix)
    assert bus.transport.audit_indexes(ORDERS, BILLING) == []


def test_a_receiver_is_warned_of_a_missing_index_once(bus, caplog, monkeypatch):
    monkeypatch.setattr(transport_module, "_warned", set())
    drop_index(bus)
    for _ in range(2):
        bus.transport.claim(ORDERS, "me", 1)
    assert caplog.text.count(INDEX) >= 1
    assert len([record for record in caplog.records if "is missing" in record.getMessage()]) == 1


def test_a_table_of_another_shape_is_no_nginn_queue(bus):
    bus.transport.install("plain")
    with pytest.raises(ConfigurationError, match=r"is no NGinn queue: its table lacks"):
        bus.transport.audit_indexes("sql://db/plain")
    with pytest.raises(QueueNotFoundError, match=r"sql://db/Nowhere"):
        bus.transport.audit_indexes("sql://db/Nowhere")


def test_every_queue_is_audited_when_none_is_named(bus):
    drop_index(bus)
    assert [finding.queue for finding in bus.transport.audit_indexes()] == [ORDERS]


def test_an_account_that_can_only_read_and_write_can_do_everything_else(postgresql, postgres):
    role = f"nginn_{postgresql.schema}"
    postgres.run_sql(f"CREATE ROLE {role} LOGIN PASSWORD '{ROLE_PASSWORD}'")
    nginn = settings(sequences=True)
    installer = postgresql.transport(nginn=nginn)
    installer.install(ORDERS, BILLING, SENDER, options=InstallOptions(grant_to=role))
    url = postgres.url(user=role, password=ROLE_PASSWORD)
    with QueueTransport(url, schema=postgresql.schema, nginn=nginn) as runtime:
        bus, queue = Bus(postgresql, runtime), runtime.resolve(ORDERS)
        bus.send(6)
        bus.insert(body_of(9), msg_headers="_NG-Seq=s|_NG-SeqNum=0|_NG-SeqLen=2")
        bus.insert_control("SubscribeRequest", SubscriberEndpoint=BILLING, MessageType="T", SubscriptionTime="01:00:00")
        with runtime.receive(ORDERS, 2) as batch:
            assert len(batch) == 2
        first, second = runtime.claims.split(runtime.claim(ORDERS, "me", 10), 2)
        runtime.claims.renew(first)
        runtime.claims.complete(Completion(first, read=None))
        runtime.claims.give_back(second)
        assert runtime.move_due(queue) == 0
        assert runtime.purge(ORDERS) == 0
        assert runtime.nginn.retry_failed(queue) == 0
        assert runtime.audit_indexes(ORDERS) == []
        assert [one.subscriber for one in runtime.nginn.subscriptions.all()] == [BILLING]
        with pytest.raises(AccessDeniedError):
            runtime.install("sql://db/More")
