"""Which ODBC driver is used, and what of the setting reaches it."""

import pyodbc
import pytest
from sqlalchemy import URL, create_engine

from queue_pipeline.errors import DriverMissingError
from queue_pipeline.transport.database.dialects import odbc_drivers
from queue_pipeline.transport.database.dialects.odbc_drivers import (
    SQLSERVER_DRIVERS,
    find_driver,
    fitting_driver,
    with_driver,
)
from queue_pipeline.transport.database.dialects.odbc_postgresql import OdbcPostgreSqlDialect
from queue_pipeline.transport.database.setting import database_url

EIGHTEEN, SEVENTEEN, FREETDS = SQLSERVER_DRIVERS


@pytest.fixture
def installed(monkeypatch):
    """The drivers that the driver manager lists; nothing comes as a Python package."""
    names: list[str] = []
    monkeypatch.setattr(pyodbc, "drivers", lambda: names)
    monkeypatch.setattr(odbc_drivers, "packaged_sqlserver_driver", lambda: None)
    return names


def odbc_string(url: URL) -> str:
    dialect = OdbcPostgreSqlDialect() if url.get_backend_name() == "postgresql" else create_engine(url).dialect
    return dialect.create_connect_args(url)[0][0]


def pairs(setting: str) -> dict[str, str]:
    """What the driver is given; no value of these tests holds a semicolon."""
    url = with_driver(database_url(setting))
    text = odbc_string(url)
    found = dict(pair.split("=", 1) for pair in text.split(";"))
    assert len(found) == text.count(";") + 1, f"a name that comes twice: {text}"
    return found


# --- the driver --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "there", "found"),
    [
        (None, [FREETDS, SEVENTEEN, EIGHTEEN], EIGHTEEN),
        (None, [FREETDS, "PostgreSQL Unicode", SEVENTEEN], SEVENTEEN),
        (None, ["PostgreSQL Unicode", FREETDS], FREETDS),
        (FREETDS, [FREETDS, EIGHTEEN], FREETDS),
        ("My Own Driver", ["My Own Driver", EIGHTEEN], "My Own Driver"),
        (__file__, [], __file__),
    ],
)
def test_the_requested_driver_is_used_or_else_the_best_installed_one(wanted, there, found):
    assert find_driver(wanted, SQLSERVER_DRIVERS, there, "install one") == found


def test_a_driver_that_is_not_installed_is_named_with_those_that_are():
    with pytest.raises(DriverMissingError, match=r"'No Such Driver' is not installed; installed are: FreeTDS, x"):
        find_driver("No Such Driver", SQLSERVER_DRIVERS, [FREETDS, "x"], "install one")
    with pytest.raises(DriverMissingError, match="installed are: none"):
        find_driver("No Such Driver", SQLSERVER_DRIVERS, [], "install one")


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("mssql://u:s3cret@h/d", r"ODBC Driver 18.*FreeTDS is installed; install it with: pip install .*\[sqlserver\]"),
        ("postgresql+pyodbc://u:s3cret@h/d", r"PostgreSQL Unicode.*odbc-postgresql, or use psycopg.*postgresql://"),
        ("mssql://u:s3cret@h/d?driver=No+Such+Driver", "'No Such Driver' is not installed"),
    ],
)
def test_where_none_is_installed_the_next_step_is_named_without_the_password(installed, setting, words):
    with pytest.raises(DriverMissingError, match=words) as raised:
        with_driver(database_url(setting))
    assert "s3cret" not in str(raised.value)


def test_a_driver_that_came_as_a_python_package_is_used_unless_another_is_asked_for(installed, monkeypatch):
    monkeypatch.setattr(odbc_drivers, "packaged_sqlserver_driver", lambda: "/site/libmsodbcsql.so")
    installed[:] = [EIGHTEEN]
    assert pairs("mssql://u:p@h/d")["DRIVER"] == "{/site/libmsodbcsql.so}"
    assert pairs(f"mssql://u:p@h/d?driver={EIGHTEEN}")["DRIVER"] == "{ODBC Driver 18 for SQL Server}"


def test_the_packaged_driver_is_a_file_of_this_machine():
    pytest.importorskip("mssql_python_odbc")
    packaged = odbc_drivers.packaged_sqlserver_driver()
    assert packaged is not None
    assert find_driver(packaged, (), [], "") == packaged


BUILDS = [
    f"/site/libs/linux/{system}/{machine}/lib/libmsodbcsql-18.6.so.2.1"
    for system in ("rhel", "suse", "debian_ubuntu")
    for machine in ("x86_64", "arm64")
]


@pytest.mark.parametrize(
    ("systems", "machine", "part"),
    [
        (["debian"], "x86_64", "debian_ubuntu/x86_64"),
        (["linuxmint", "ubuntu", "debian"], "x86_64", "debian_ubuntu/x86_64"),
        (["rocky", "rhel", "centos", "fedora"], "aarch64", "rhel/arm64"),
        (["opensuse-leap", "suse", "opensuse"], "AMD64", "suse/x86_64"),
        (["unheard-of"], "x86_64", "debian_ubuntu/x86_64"),
    ],
)
def test_the_build_for_this_system_and_machine_is_chosen(systems, machine, part):
    chosen = fitting_driver(BUILDS, systems, machine)
    assert chosen is not None and part in chosen


def test_without_a_build_for_this_machine_there_is_no_driver():
    assert fitting_driver(BUILDS, ["debian"], "riscv64") is None
    assert fitting_driver([], ["debian"], "x86_64") is None


# --- what it is given --------------------------------------------------------------------------------------


def test_microsofts_driver_takes_the_port_behind_the_host(installed):
    installed[:] = [EIGHTEEN]
    found = pairs("mssql://sa:pw@db.example:1444/shop?Encrypt=no&ApplicationIntent=ReadOnly")
    assert found["Server"] == "db.example,1444" and found["DRIVER"] == f"{{{EIGHTEEN}}}"
    assert (found["Database"], found["UID"], found["PWD"]) == ("shop", "sa", "pw")
    assert (found["Encrypt"], found["ApplicationIntent"]) == ("no", "ReadOnly")
    assert pairs("mssql://sa:pw@db.example/shop")["Server"] == "db.example"


def test_freetds_takes_the_port_by_its_name_and_the_version_that_new_servers_need(installed):
    installed[:] = [FREETDS]
    found = pairs("mssql://sa:pw@db.example:1444/shop?Encrypt=no")
    assert (found["Server"], found["port"], found["TDS_Version"]) == ("db.example", "1444", "7.4")
    assert found["Encrypt"] == "no"
    assert pairs("mssql://sa:pw@db.example/shop")["port"] == "1433"


@pytest.mark.parametrize("name", ["driver", "Driver", "DRIVER"])
def test_the_name_of_the_driver_is_used_in_any_letter_case_and_only_once(installed, name):
    installed[:] = [EIGHTEEN, FREETDS]
    found = pairs(f"mssql://sa:pw@h/shop?{name}=FreeTDS&x=y")
    assert {key: value for key, value in found.items() if key.lower() == "driver"} == {"DRIVER": "{FreeTDS}"}
    assert found["x"] == "y"


@pytest.mark.parametrize(
    "setting", ["mssql+pyodbc:///?odbc_connect=DRIVER%3Dx%3BSERVER%3Dh", "mssql://h/d?dsn=shop", "postgresql://h/d"]
)
def test_a_whole_odbc_string_a_dsn_and_another_driver_stay_as_they_are(installed, setting):
    url = database_url(setting)
    assert with_driver(url) == url


@pytest.mark.parametrize("setting", ["mssql+pyodbc:///?odbc_connect=DRIVER%3Dx", "mssql://h/d?driver=FreeTDS"])
def test_pyodbc_does_not_pool_underneath(installed, monkeypatch, setting):
    installed[:] = [FREETDS]
    monkeypatch.setattr(pyodbc, "pooling", True)
    with_driver(database_url(setting))
    assert pyodbc.pooling is False


def test_postgresql_over_odbc_gets_the_options_that_its_statements_rely_on(installed):
    installed[:] = ["PostgreSQL Unicode"]
    found = pairs("postgresql+pyodbc://u:p@h:5433/d?maxvarcharsize=9&Extra=1")
    assert (found["Server"], found["port"], found["DRIVER"]) == ("h", "5433", "{PostgreSQL Unicode}")
    assert (found["Protocol"], found["ByteaAsLongVarBinary"], found["Extra"]) == ("7.4-0", "1", "1")
    assert found["maxvarcharsize"] == "9" and "MaxVarcharSize" not in found, "the setting's own option wins"
    assert pairs("postgresql+pyodbc://u:p@h/d")["port"] == "5432"


@pytest.mark.parametrize("end", ["", ";", "; "])
def test_a_whole_odbc_string_for_postgresql_gets_only_the_options_that_it_lacks(end):
    given = "DRIVER={a;Protocol=b};maxvarcharsize=9" + end
    text = odbc_string(URL.create("postgresql+pyodbc", query={"odbc_connect": given}))
    assert text.startswith("DRIVER={a;Protocol=b};maxvarcharsize=9;")
    assert ";Protocol=7.4-0" in text and ";ByteaAsLongVarBinary=1" in text
    assert text.lower().count("maxvarcharsize") == 1 and ";;" not in text


def test_a_password_for_postgresql_stands_in_braces():
    """psqlodbc reads plus and percent signs outside of braces as in a URL."""
    url = database_url("postgresql+pyodbc://u@h/d?driver=x").set(password="a+%41;}b")
    assert ";PWD={a+%41;}}b}" in odbc_string(url)
    assert "PWD" not in odbc_string(url.set(password=""))
