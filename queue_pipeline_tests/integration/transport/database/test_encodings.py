"""Text in other encodings: a database that cannot hold every header is refused, and a client's encoding is ours."""

import pytest
from sqlalchemy import create_engine

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline.transport.database.dialects.odbc_drivers import with_driver
from queue_pipeline.transport.database.setting import database_url

TEXT = "é € \U0001f600"
DRIVERS = ("psycopg", "pyodbc")


@pytest.fixture(scope="module", params=["LATIN1", "SQL_ASCII"])
def narrow(request, postgres):
    """The name of a database of another encoding, and that encoding."""
    name = f"in_{request.param.lower()}"
    locale = "LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    postgres.run_sql(f"CREATE DATABASE {name} ENCODING '{request.param}' {locale}")
    return name, request.param


@pytest.mark.parametrize("driver", DRIVERS)
@pytest.mark.parametrize("own_engine", [False, True])
def test_a_database_of_another_encoding_is_refused_at_connect(postgres, narrow, driver, own_engine):
    name, encoding = narrow
    url = postgres.url(name, driver=driver)
    options = {"client_encoding": "utf8"} if driver == "psycopg" else {}
    engine = create_engine(with_driver(database_url(url)), connect_args=options)
    transport = QueueTransport(engine if own_engine else url)
    for _ in range(2):
        with pytest.raises(ConfigurationError, match=encoding) as caught:
            transport.install("orders")
        assert f"/{name}" in str(caught.value)
        assert "ENCODING 'UTF8'" in str(caught.value)
        assert postgres.password not in str(caught.value)
    transport.close()
    engine.dispose()


@pytest.mark.parametrize("encoding", ["latin1", "utf8"])
def test_an_engine_of_another_encoding_sends_and_receives_every_text(postgres, encoding):
    """A setting cannot name one; an engine of the caller's can."""
    postgres.run_sql("CREATE SCHEMA IF NOT EXISTS encodings")
    url = database_url(postgres.url(driver="psycopg"))
    engine = create_engine(url, connect_args={"client_encoding": encoding})
    transport = QueueTransport(engine, schema="encodings")
    transport.install("orders")
    transport.send("orders", new_message(TEXT, headers={"own": TEXT}))
    with transport.receive("orders") as batch:
        assert [(message.headers["own"], message.body.decode()) for message in batch] == [(TEXT, TEXT)]
    transport.pauses.pause("orders", "me", TEXT)
    assert transport.pauses.list()["orders"].reason == TEXT
    transport.pauses.resume("orders")
    engine.dispose()
