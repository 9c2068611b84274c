"""The setting of a database: its forms, its mistakes, and that its secrets are never shown."""

import pickle
from urllib.parse import quote

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from sqlalchemy import URL, make_url

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database.database import Database
from queue_pipeline.transport.database.setting import (
    ENVIRONMENT_VARIABLE,
    absolute,
    database_url,
    default_database_url,
    secrets,
    shown,
)

SECRET = "s3cr3t-Pässwörd"


def odbc(text: str, scheme: str = "mssql+pyodbc") -> str:
    return f"{scheme}:///?odbc_connect={quote(text, safe='')}"


# --- the forms ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///queues.db", "queues.db"),
        ("sqlite:///data/queues.db", "data/queues.db"),
        ("sqlite:////var/lib/queues.db", "/var/lib/queues.db"),
        ("sqlite+pysqlite:///queues.db", "queues.db"),
        ("sqlite:///a%20b%3F.db", "a b?.db"),
    ],
)
def test_sqlite_is_named_by_its_file(text, path):
    assert database_url(text) == URL.create("sqlite", database=path)


@pytest.mark.parametrize(
    ("scheme", "driver"),
    [
        ("postgresql", "postgresql+psycopg"),
        ("postgresql+psycopg", "postgresql+psycopg"),
        ("postgresql+pyodbc", "postgresql+pyodbc"),
        ("mssql", "mssql+pyodbc"),
        ("mssql+pyodbc", "mssql+pyodbc"),
    ],
)
def test_a_server_is_named_by_user_password_host_port_and_database(scheme, driver):
    url = database_url(f"{scheme}://us%40er:p%2Fw%3Ad@db.example:1234/my%20db?Encrypt=no&a=b%26c")
    assert (url.drivername, url.username, url.password) == (driver, "us@er", "p/w:d")
    assert (url.host, url.port, url.database) == ("db.example", 1234, "my db")
    assert dict(url.query) == {"Encrypt": "no", "a": "b&c"}


def test_user_password_and_port_may_be_left_out():
    url = database_url("postgresql://localhost/queues")
    assert (url.username, url.password, url.port, dict(url.query)) == (None, None, None, {})


def test_a_host_may_be_an_ipv6_address_or_the_folder_of_a_socket():
    url = database_url("mssql://sa:x@[::1]:1433/db")
    assert (url.host, url.port, shown(url)) == ("::1", 1433, "mssql+pyodbc://sa:***@[::1]:1433/db")
    assert database_url("postgresql:///db?host=/run/postgresql").query["host"] == "/run/postgresql"


@pytest.mark.parametrize("scheme", ["mssql", "mssql+pyodbc", "postgresql+pyodbc"])
def test_a_whole_odbc_string_is_kept_as_it_is(scheme):
    given_string = "DRIVER={PostgreSQL Unicode};SERVER=h;PWD={a;b+%41}"
    url = database_url(odbc(given_string, scheme))
    assert url.query["odbc_connect"] == given_string


def test_a_url_object_of_sqlalchemy_is_read_like_its_text():
    text = f"postgresql://user:{quote(SECRET)}@host:5432/db?sslmode=require"
    assert database_url(make_url(text)) == database_url(text)
    with pytest.raises(ConfigurationError, match="unknown database scheme 'mysql'"):
        database_url(URL.create("mysql", host="h", database="d"))


# --- defaults ----------------------------------------------------------------------------------------------


def test_the_environment_names_the_database():
    environment = {ENVIRONMENT_VARIABLE: "postgresql://localhost/queues", "DAGSTER_HOME": "/dagster"}
    assert ENVIRONMENT_VARIABLE == "QUEUE_PIPELINE_DATABASE"
    assert default_database_url(environment).drivername == "postgresql+psycopg"


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"DAGSTER_HOME": "/dagster"}, "/dagster/queue_pipeline/queues.db"),
        ({}, ".queue_pipeline/queues.db"),
        ({ENVIRONMENT_VARIABLE: "", "DAGSTER_HOME": ""}, ".queue_pipeline/queues.db"),
        # A path is no URL: its characters mean themselves.
        ({"DAGSTER_HOME": "/a%20b?c#d"}, "/a%20b?c#d/queue_pipeline/queues.db"),
    ],
)
def test_without_a_setting_it_is_a_sqlite_file_at_home(environment, path):
    assert default_database_url(environment) == URL.create("sqlite", database=path)


def test_the_process_environment_is_the_default(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "sqlite:///from-the-environment.db")
    assert default_database_url().database == "from-the-environment.db"
    assert str(Database(default_database_url())) == "sqlite:///from-the-environment.db"


def test_a_bad_setting_in_the_environment_is_an_error_and_no_fallback():
    with pytest.raises(ConfigurationError, match="scheme"):
        default_database_url({ENVIRONMENT_VARIABLE: "queues.db"})


def test_a_file_is_the_same_one_for_a_process_in_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert absolute(database_url("sqlite:///queues.db")).database == str(tmp_path / "queues.db")
    for text in ("sqlite:////var/queues.db", "postgresql://host/db", odbc("DRIVER=x")):
        assert absolute(database_url(text)) == database_url(text)


# --- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no scheme"),
        ("queues.db", "no scheme"),
        ("postgres://localhost/db", "unknown database scheme 'postgres'"),
        ("mysql://localhost/db", "unknown database scheme 'mysql'"),
        ("postgresql+psycopg2://localhost/db", r"unknown database scheme 'postgresql\+psycopg2'"),
        ("odbc:DRIVER=x", "unknown database scheme 'odbc'"),
        ("sqlite:queues.db", "named by its file"),
        ("sqlite://queues.db", "named by its file"),
        ("sqlite:///", "named by its file"),
        ("sqlite://", "named by its file"),
        ("sqlite:///:memory:", "named by its file"),
        ("sqlite:///file::memory:?cache=shared&uri=true", "named by its file"),
        ("sqlite:///file:queues.db?mode=memory&uri=true", "named by its file"),
        ("postgresql:localhost/db", r"cannot be read.*postgresql://user:password@host:port/db"),
        ("postgresql:///db", "names no host"),
        ("postgresql://localhost", "names no database"),
        ("postgresql://localhost/", "names no database"),
        ("mssql://sa:x@localhost:1433", "names no database"),
        ("mssql://localhost:0/db", "between 1 and 65535"),
        ("mssql://localhost:99999/db", "between 1 and 65535"),
        ("mssql://localhost:port/db", "cannot be read"),
        ("postgresql://localhost/db?client_encoding=latin1", "client_encoding.*UTF-8"),
        # A transaction is the transport's to begin and end.
        ("postgresql://localhost/db?autocommit=1", "the option autocommit, which the transport sets"),
        ("mssql://localhost/db?autocommit=true", "the option autocommit"),
        ("mssql:///?odbc_connect=DRIVER%3Dx&autocommit=true", "the option autocommit"),
        ("postgresql://localhost/db?prepare_threshold=5", "the option prepare_threshold"),
    ],
)
def test_a_mistake_is_named(text, words):
    with pytest.raises(ConfigurationError, match=words):
        database_url(text)


def test_an_unknown_scheme_is_refused_with_the_forms_that_exist():
    with pytest.raises(ConfigurationError, match=r"mysql.*sqlite:///path, postgresql://"):
        QueueTransport("mysql://u:p@h/d")


def test_a_default_catalog_wins_over_that_of_the_setting():
    """UT-42: and nothing is opened to find either."""
    setting = "mssql://sa:x@127.0.0.1:9/shop"
    assert QueueTransport(setting).resolve("orders").catalog == "shop"
    assert QueueTransport(setting, catalog="other").resolve("orders").catalog == "other"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://user:{SECRET}@localhost:port/db",
        f"postgresql://user:{SECRET}@localhost",
        f"postgresql://user:{SECRET}@/db",
        f"postgresql://user:more@{SECRET}@localhost/db",
        f"postgresql://user:more@{SECRET}@localhost:0/db",
        f"mssql://user:{SECRET}@[::1/db",
        f"mssql://user:{SECRET}@host:1433:1433/db",
        f"postgres://user:{SECRET}@localhost/db",
        f"postgresql:user:{SECRET}@localhost/db",
        f"user:{SECRET}@localhost/db",
        f"postgresql://user:{SECRET}@host/db?client_encoding=latin1",
    ],
)
def test_an_error_about_a_setting_does_not_repeat_its_password(text):
    with pytest.raises(ConfigurationError) as caught:
        database_url(text)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None and caught.value.__suppress_context__ is (
        caught.value.__context__ is not None
    )


# --- secrets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("sqlite:///queues.db", "sqlite:///queues.db"),
        (f"postgresql://us%40er:{SECRET}@host:5432/db?x=y", "postgresql+psycopg://us%40er:***@host:5432/db"),
        ("postgresql://user@host/db", "postgresql+psycopg://user@host/db"),
        ("mssql://host/db", "mssql+pyodbc://host/db"),
        (f"mssql://host/db?UID=u&PWD={SECRET}", "mssql+pyodbc://host/db"),
        (f"postgresql://u@h/d?sslpassword={SECRET}", "postgresql+psycopg://u@h/d"),
        (odbc(f"DRIVER=x;PWD={SECRET}"), "mssql+pyodbc:///"),
    ],
)
def test_what_is_printed_holds_no_secret(text, form):
    transport = QueueTransport(text)
    assert shown(database_url(text)) == str(transport.database) == form
    for printed in (repr(transport.settings), str(transport.settings), f"{transport.settings}"):
        assert SECRET not in printed
        assert form.partition("://")[2] in printed or form.startswith("sqlite")


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("sqlite:///queues.db", ()),
        ("postgresql://user@host/db", ()),
        ("postgresql://user:p%2Fw@host/db", ("p/w",)),
        ("postgresql://u:one@h/d?sslkey=k&sslpassword=two", ("one", "two")),
        ("mssql://host/db?UID=u&PWD=hidden", ("hidden",)),
        ("mssql://host/db?PWD=one&PWD=two", ("one", "two")),
        ("postgresql+pyodbc://host/db?Password=hidden", ("hidden",)),
        ("mssql://host/db?AccessToken=hidden&ClientSecret=too", ("hidden", "too")),
        (odbc("DRIVER=x;Pwd={a;}}b};UID=u"), ("a;}b",)),
        (odbc("DRIVER=x;PASSWORD=one;PWD=two"), ("one", "two")),
        (odbc("DRIVER=x;PWD = {one} ;UID=u"), ("one",)),
        (odbc("DRIVER=x;PWD="), ()),
        (odbc("DRIVER=x;PWD={}"), ()),
    ],
)
def test_secrets_are_known_so_that_errors_can_leave_them_out(text, found):
    assert secrets(database_url(text)) == found


@given(st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("{};=} "), min_size=1, max_size=8))
@example("}")
@example("};UID=sa")
@example("{a}")
@example("a ")
def test_any_password_in_the_braces_of_an_odbc_string_is_known(password):
    braced = "{" + password.replace("}", "}}") + "}"
    assert secrets(database_url(odbc(f"DRIVER=x;PWD={braced};UID=user"))) == (password,)


# --- settings that travel ----------------------------------------------------------------------------------


def test_another_process_makes_the_same_transport_of_the_pickled_settings():
    """It needs the password, so that the pickle holds it; what is printed does not."""
    transport = QueueTransport(f"postgresql://user:{quote(SECRET)}@host/db?sslmode=require", schema="sales")
    settings = pickle.loads(pickle.dumps(transport.settings))
    assert settings == transport.settings
    other = QueueTransport.of(settings)
    assert other.settings == transport.settings
    assert other.database.url.password == SECRET and other.database.url.query["sslmode"] == "require"
    assert SECRET not in repr(settings)
