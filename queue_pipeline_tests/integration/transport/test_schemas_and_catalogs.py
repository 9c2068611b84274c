import contextlib
import itertools
import os

import pytest
from sqlalchemy.exc import DBAPIError

from queue_pipeline.client import QueueClient
from queue_pipeline.transport import Operation, QueueAddress, QueueTransport, new_message
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import database_url
from queue_pipeline_tests.support.databases.backends import SQLSERVER_VARIABLE
from queue_pipeline_tests.support.responder import Responder
from queue_pipeline_tests.support.waiting import eventually

_numbers = itertools.count(1)


@pytest.fixture
def elsewhere(backend):
    """A second schema on the same database; its name has an @ in it."""
    if backend.name == "sqlite":
        pytest.skip("SQLite has no schemas")
    transport = backend.transport()
    schema = f"{backend.schema}@"
    quoted = transport.database.dialect.quote(schema)
    backend.sql(transport, f"CREATE SCHEMA {quoted}")
    yield schema
    with contextlib.suppress(Exception):
        for table in ("remote", "remote.Delayed", "remote.Claimed", "error"):
            name = f"{quoted}.{transport.database.dialect.quote(table)}"
            with contextlib.suppress(Exception):
                backend.sql(transport, f"DROP TABLE {name}")
        backend.sql(transport, f"DROP SCHEMA {quoted}")


def install_remote(backend, schema):
    remote = backend.transport(schema=schema)
    remote.install(plain_queues=["remote", "error"])
    return remote


def test_an_address_names_its_schema(backend, elsewhere):
    """AS-21, AS-22, AS-27: schema in the address, quoted, and with an @ in it."""
    remote = install_remote(backend, elsewhere)
    local = backend.transport()
    canonical = remote.resolve("remote").canonical
    assert elsewhere in canonical
    local.send(canonical, new_message("by canonical address"))
    local.send(QueueAddress("remote", elsewhere), new_message("by parts"))
    assert remote.peek("remote") == 2


def test_a_schema_override_for_one_queue_wins_over_the_address(backend, elsewhere):
    """AS-24: per-queue override first, whatever the address says."""
    remote = install_remote(backend, elsewhere)
    local = backend.transport(queue_schemas={"remote": elsewhere})
    local.send("remote", new_message("by override"))
    local.send(QueueAddress("remote", "not_there"), new_message("override wins"))
    assert remote.peek("remote") == 2


def test_the_default_schema_is_used_for_addresses_without_one(backend, elsewhere):
    """AS-23: the sender's own default."""
    remote = install_remote(backend, elsewhere)
    backend.transport(schema=elsewhere).send("remote", new_message("by default"))
    assert remote.peek("remote") == 1


def test_the_error_queue_can_be_in_another_schema(backend, elsewhere):
    """AS-25, AP-01: by override and by address."""
    remote = install_remote(backend, elsewhere)
    local = backend.transport(error_queue=remote.resolve("error").canonical)
    local.install("orders", plain_queues=[])
    spoil(local, backend)
    by_override = backend.transport(queue_schemas={"error": elsewhere})
    spoil(by_override, backend)
    assert remote.peek("error") == 2


def spoil(transport, backend):
    transport.send("orders", new_message("{}"))
    column = "headers" if backend.name == "postgresql" else "Headers"
    backend.sql(transport, f"UPDATE {transport.resolve('orders').qualified} SET {column} = 'broken'")
    with transport.receive("orders") as batch:
        assert batch.poisoned == 1


@pytest.fixture
def catalog(sqlserver):
    """A second database on the same server."""
    name = f"qp test {os.getpid()}.{next(_numbers)} &#"
    engine = Database(database_url(sqlserver.url)).engine.execution_options(isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        try:
            connection.exec_driver_sql(f"CREATE DATABASE [{name}]")
        except DBAPIError as error:
            pytest.skip(f"needs an account that may create a database: {error.orig}")
        try:
            yield name
        finally:
            # A session that was just closed may still be counted as using it.
            eventually(lambda: dropped(connection, name))
    engine.dispose()


def dropped(connection, name):
    try:
        connection.exec_driver_sql(f"DROP DATABASE [{name}]")
    except DBAPIError as error:
        if "in use" not in str(error):
            raise
        return False
    return True


def in_catalog(catalog):
    return QueueTransport(database_url(os.environ[SQLSERVER_VARIABLE]).set(database=catalog))


def test_messages_and_replies_cross_catalogs_on_one_connection(sqlserver, catalog):
    """AS-30, AS-33: three-part names, special characters in the catalog's name."""
    local = sqlserver.transport()
    local.install("orders")
    with in_catalog(catalog) as remote:
        remote.install("sales")
        address = remote.resolve("sales").canonical
        assert address == f"sales@[dbo]@[{catalog}]"
        local.send(address, new_message("over there"))
        with remote.receive("sales") as batch:
            assert [message.body for message in batch] == [b"over there"]
            batch.send([Operation(local.resolve("orders").canonical, new_message("reply"))])
        assert [shown.body for shown in local.show("orders")] == [b"reply"]


def test_the_error_queue_can_be_in_another_catalog(sqlserver, catalog):
    """AS-31, AS-32: by option and by address."""
    with in_catalog(catalog) as remote:
        remote.install(plain_queues=["error"])
        by_address = sqlserver.transport(error_queue=remote.resolve("error").canonical)
        by_address.install("orders", plain_queues=[])
        spoil(by_address, sqlserver)
        by_option = sqlserver.transport(queue_catalogs={"error": catalog}, queue_schemas={"error": "dbo"})
        spoil(by_option, sqlserver)
        assert remote.peek("error") == 2


def test_a_default_catalog_receives_what_names_none(sqlserver, catalog):
    """AS-34, AS-35: queues are created and used in the default catalog, not in the connection's."""
    local = sqlserver.transport(catalog=catalog, schema="dbo")
    if sqlserver.is_babelfish:
        with in_catalog(catalog) as remote:
            remote.install("sales")
    else:
        local.install("sales")
    local.send("sales", new_message("there"))
    assert local.resolve("sales").canonical == f"sales@[dbo]@[{catalog}]"
    with in_catalog(catalog) as remote:
        assert remote.peek("sales") == 1


def test_a_reply_crosses_schemas_to_the_queue_of_one_instance(backend, elsewhere):
    """AP-04: by the canonical address alone."""
    remote, local = install_remote(backend, elsewhere), backend.transport()
    with QueueClient(local, "shop", discriminator="web1", create=True) as client, Responder(remote, "remote"):
        reply = client.request(remote.resolve("remote").canonical, "over there", 20)
    assert reply.text == "re: over there"


def test_a_reply_crosses_catalogs_to_the_queue_of_one_instance(sqlserver, catalog):
    """AS-30: by the canonical address alone."""
    local = sqlserver.transport()
    with in_catalog(catalog) as remote:
        remote.install("sales")
        with QueueClient(local, "shop", discriminator="web1", create=True) as client, Responder(remote, "sales"):
            assert client.request(remote.resolve("sales").canonical, "over there", 20).text == "re: over there"


def test_events_cross_schemas_through_a_shared_table(backend, elsewhere):
    """AS-26: publisher and subscriber in schemas of their own, with one table of subscriptions."""
    publisher = backend.transport()
    publisher.install("orders")
    shared = publisher.subscriptions.table.canonical
    install_remote(backend, elsewhere)
    remote = backend.transport(schema=elsewhere, subscriptions_table=shared)
    remote.subscriptions.subscribe("remote", "Shop.OrderAccepted")
    assert publisher.publish("Shop.OrderAccepted", new_message("over there")) == 1
    assert [shown.body for shown in remote.show("remote")] == [b"over there"]


def test_events_cross_catalogs_through_a_shared_table(sqlserver, catalog):
    """AS-36: publisher and subscriber in catalogs of their own, with one table of subscriptions."""
    publisher = sqlserver.transport()
    publisher.install("orders")
    with in_catalog(catalog) as remote:
        remote.install("sales")
        shared = {"subscriptions_table": publisher.subscriptions.table.canonical}
        with QueueTransport(remote.database.url, **shared) as subscriber:
            subscriber.subscriptions.subscribe("sales", "Shop.OrderAccepted")
        (subscription,) = publisher.subscriptions.list()
        assert subscription.queue == f"sales@[dbo]@[{catalog}]"
        assert publisher.publish("Shop.OrderAccepted", new_message("over there")) == 1
        assert [shown.body for shown in remote.show("sales")] == [b"over there"]
