import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from pydantic import SecretStr, ValidationError

from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database_url import (
    ENVIRONMENT_VARIABLE,
    DatabaseUrl,
    default_database_url,
    odbc_pairs,
    odbc_string,
    parse_database_url,
)
from queue_pipeline.transport.dialects.odbc import connection_string
from queue_pipeline.transport.errors import ConfigurationError

SECRET = "s3cr3t-Pässwörd"


def revealed(secret: SecretStr | None) -> str | None:
    return secret.get_secret_value() if secret else None


# --- the four forms ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("sqlite:///queues.db", "queues.db"),
        ("sqlite:///data/queues.db", "data/queues.db"),
        ("sqlite:////var/lib/queues.db", "/var/lib/queues.db"),
        ("sqlite:///a%20b%3F.db", "a b?.db"),
    ],
)
def test_sqlite_is_named_by_its_file(text, path):
    assert parse_database_url(text) == DatabaseUrl(scheme="sqlite", path=path)


@pytest.mark.parametrize("scheme", ["postgresql", "postgresql+pyodbc", "mssql"])
def test_a_server_is_named_by_user_password_host_port_and_database(scheme):
    url = parse_database_url(f"{scheme}://us%40er:p%2Fw%3Ad@db.example:1234/my%20db?Encrypt=no&Trust=&a=b%26c")
    assert (url.scheme, url.user, revealed(url.password)) == (scheme, "us@er", "p/w:d")
    assert (url.host, url.port, url.database) == ("db.example", 1234, "my db")
    assert url.options == {"Encrypt": "no", "Trust": "", "a": "b&c"}


def test_user_password_and_port_may_be_left_out():
    url = parse_database_url("postgresql://localhost/queues")
    assert (url.user, url.password, url.port, url.options) == (None, None, None, {})


def test_a_host_may_be_an_ipv6_address():
    url = parse_database_url("mssql://sa:x@[::1]:1433/db")
    assert (url.host, url.port, str(url)) == ("::1", 1433, "mssql://sa:***@[::1]:1433/db")


def test_a_whole_odbc_string_is_kept_as_it_is():
    given_string = "DRIVER={PostgreSQL Unicode};SERVER=h;PWD={a;b}"
    url = parse_database_url(f"odbc:{given_string}")
    assert (url.scheme, revealed(url.odbc)) == ("odbc", given_string)


# --- defaults ----------------------------------------------------------------------------------------------


def test_the_environment_names_the_database():
    environment = {ENVIRONMENT_VARIABLE: "postgresql://localhost/queues", "DAGSTER_HOME": "/dagster"}
    assert ENVIRONMENT_VARIABLE == "QUEUE_PIPELINE_DATABASE"
    assert default_database_url(environment).scheme == "postgresql"


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"DAGSTER_HOME": "/dagster"}, "/dagster/queue_pipeline/queues.db"),
        ({}, ".queue_pipeline/queues.db"),
        ({ENVIRONMENT_VARIABLE: "", "DAGSTER_HOME": ""}, ".queue_pipeline/queues.db"),
    ],
)
def test_without_a_setting_it_is_a_sqlite_file_at_home(environment, path):
    assert default_database_url(environment) == DatabaseUrl(scheme="sqlite", path=path)


def test_the_process_environment_is_the_default(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, "sqlite:///from-the-environment.db")
    assert default_database_url().path == "from-the-environment.db"


def test_a_bad_setting_in_the_environment_is_an_error_and_no_fallback():
    with pytest.raises(ConfigurationError, match="scheme"):
        default_database_url({ENVIRONMENT_VARIABLE: "queues.db"})


# --- mistakes ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "no scheme"),
        ("queues.db", "no scheme"),
        ("postgres://localhost/db", "unknown database scheme 'postgres'"),
        ("mysql://localhost/db", "unknown database scheme 'mysql'"),
        ("sqlite:queues.db", "named by its file"),
        ("sqlite://queues.db", "named by its file"),
        ("sqlite:///", "named by its file"),
        ("postgresql:///db", "names no host"),
        ("postgresql://localhost", "names no database"),
        ("postgresql://localhost/", "names no database"),
        ("mssql://localhost:0/db", "cannot be read"),
        ("mssql://localhost:99999/db", "cannot be read"),
        ("mssql://localhost:port/db", "cannot be read"),
        ("odbc:", "connection string"),
        ("odbc:nonsense", "connection string"),
        ("odbc:DRIVER={PostgreSQL", "never closes"),
    ],
)
def test_a_mistake_is_named(text, words):
    with pytest.raises(ConfigurationError, match=words):
        parse_database_url(text)


def test_a_tsql_setting_without_a_database_is_refused():
    """UT-42: an address needs a catalog, so the connection must name one."""
    with pytest.raises(ConfigurationError, match="names no database"):
        parse_database_url("mssql://sa:x@localhost:1433")
    assert parse_database_url("mssql://sa:x@localhost:1433/shop").database == "shop"


def test_a_default_catalog_wins_over_that_of_the_connection():
    """UT-42: and nothing is opened to find either."""

    def connect():
        raise AssertionError("a connection was opened")

    setting = "mssql://sa:x@localhost:1433/shop"
    assert QueueTransport(setting, connect=connect).resolve("orders").catalog == "shop"
    assert QueueTransport(setting, connect=connect, catalog="other").resolve("orders").catalog == "other"


@pytest.mark.parametrize(
    "text",
    [
        f"postgresql://user:{SECRET}@localhost:port/db",
        f"postgresql://user:{SECRET}@localhost",
        f"postgresql://user:{SECRET}@/db",
        f"postgresql://user:{SECRET}#more@localhost/db",
        f"mssql://user:{SECRET}/more@localhost/db",
        f"mssql://user:{SECRET}@[::1/db",
        f"postgres://user:{SECRET}@localhost/db",
        f"odbc:PWD={{{SECRET}",
    ],
)
def test_an_error_about_a_setting_does_not_repeat_its_password(text):
    with pytest.raises(ConfigurationError) as caught:
        parse_database_url(text)
    assert SECRET not in str(caught.value)
    assert caught.value.__cause__ is None, "a chained error would show the whole setting"


# --- secrets -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("sqlite:///queues.db", "sqlite:///queues.db"),
        (f"postgresql://us%40er:{SECRET}@host:5432/db?x=y", "postgresql://us%40er:***@host:5432/db"),
        ("postgresql://user@host/db", "postgresql://user@host/db"),
        ("mssql://host/db", "mssql://host/db"),
        (f"odbc:DRIVER=x;PWD={SECRET}", "odbc:***"),
    ],
)
def test_what_is_printed_holds_no_secret(text, shown):
    url = parse_database_url(text)
    assert str(url) == shown
    for form in (repr(url), f"{url.model_dump()}", url.model_dump_json()):
        assert SECRET not in form


@pytest.mark.parametrize(
    ("text", "secrets"),
    [
        ("sqlite:///queues.db", ()),
        ("postgresql://user@host/db", ()),
        ("postgresql://user:p%2Fw@host/db", ("p/w",)),
        ("odbc:DRIVER=x;Pwd={a;}}b};UID=u", ("a;}b",)),
        ("odbc:DRIVER=x;PASSWORD=one;PWD=two", ("one", "two")),
        ("odbc:DRIVER=x;PWD=", ()),
        # Options go to the driver as they are, a password among them too.
        ("mssql://host/db?UID=u&PWD=hidden", ("hidden",)),
        ("postgresql://host/db?Password=hidden", ("hidden",)),
    ],
)
def test_secrets_are_known_so_that_errors_can_leave_them_out(text, secrets):
    assert parse_database_url(text).secrets() == secrets


def test_a_password_among_the_options_is_not_printed():
    url = parse_database_url(f"mssql://host/db?UID=u&PWD={SECRET}")
    for form in (str(url), repr(url), f"{url.model_dump()}", url.model_dump_json()):
        assert SECRET not in form


def test_a_setting_cannot_be_changed_and_has_no_unknown_part():
    url = parse_database_url("sqlite:///queues.db")
    with pytest.raises(ValidationError):
        url.path = "other.db"
    with pytest.raises(ValidationError):
        DatabaseUrl.model_validate({"scheme": "sqlite", "file": "queues.db"})


# --- ODBC connection strings -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "pairs"),
    [
        ("DRIVER=x;SERVER=h", [("DRIVER", "x"), ("SERVER", "h")]),
        ("DRIVER={a b};SERVER=h;", [("DRIVER", "a b"), ("SERVER", "h")]),
        ("PWD={a;b=c};UID=u", [("PWD", "a;b=c"), ("UID", "u")]),
        ("PWD={a}}b}", [("PWD", "a}b")]),
        ("PWD={}", [("PWD", "")]),
        ("PWD=;UID=u", [("PWD", ""), ("UID", "u")]),
        (" DRIVER =x; ;UID=u", [("DRIVER", "x"), ("UID", "u")]),
        ("nonsense", []),
    ],
)
def test_the_pairs_of_an_odbc_string_are_read(text, pairs):
    assert odbc_pairs(text) == pairs


keys = st.text("ABCdef_", min_size=1, max_size=6)
values = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from("{};=} "), max_size=8)


@given(st.dictionaries(keys, values, max_size=5))
@example({"PWD": "}"})
@example({"PWD": "};UID=sa"})
@example({"PWD": "{a}"})
@example({"PWD": "a "})
@example({"PWD": ""})
def test_whatever_a_value_holds_it_survives_an_odbc_string(pairs):
    assert odbc_pairs(odbc_string(pairs)) == list(pairs.items())


@given(st.dictionaries(keys, values, max_size=3), values)
def test_no_value_can_smuggle_in_another_pair(pairs, secret):
    text = odbc_string({**pairs, "PWD": secret, "UID": "user"})
    assert dict(odbc_pairs(text))["UID"] == "user"
    assert dict(odbc_pairs(text))["PWD"] == secret


def test_the_settings_own_options_win_over_the_defaults():
    url = parse_database_url("postgresql+pyodbc://host/db?maxvarcharsize=9&Extra=1&driver=x")
    pairs = dict(odbc_pairs(connection_string(url, {"SERVER": "host"}, {"MaxVarcharSize": "0", "Protocol": "7.4-0"})))
    assert pairs == {"SERVER": "host", "Protocol": "7.4-0", "maxvarcharsize": "9", "Extra": "1"}


def test_a_whole_odbc_string_gets_only_the_defaults_that_it_lacks():
    url = parse_database_url("odbc:DRIVER=x;maxvarcharsize=9;")
    text = connection_string(url, {}, {"MaxVarcharSize": "0", "Protocol": "7.4-0"})
    assert text == "DRIVER=x;maxvarcharsize=9;Protocol=7.4-0"
