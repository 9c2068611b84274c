"""What is typed wrong is refused in one line with exit code 2, before any database is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from queue_pipeline_tests.support.command_line import run

# A port where nothing listens: a command that asked a database would end with 4.
AWAY = "postgresql://u:p@127.0.0.1:1/db"


@pytest.mark.parametrize(
    ("words", "reported"),
    [
        ("nonsense", "no such command 'nonsense'"),
        ("peek", "missing argument 'QUEUE...'"),
        ("peek orders --nonsense", "no such option"),
        ("peek orders --database x", "--database stands before the command"),
        ("peek orders --max-records-to-peek 0", "not in the range"),
        ("peek orders --max-records-to-peek 99999999999", "not in the range"),
        ("show orders --max -1", "not in the range"),
        ("receive orders --max -1", "not in the range"),
        ("receive orders --max many", "not a valid integer"),
        ("receive orders --mode sometimes", "'sometimes' is not one of"),
        ("purge orders --batch 0", "not in the range"),
        ("move-due orders --batch -5", "not in the range"),
        ("send orders", "nothing to send; give --body, --body-file or --jsonl"),
        ("send orders --count 0", "not in the range"),
        ("send orders --body x --body-file -", "--body and --body-file are both given"),
        ("send orders --body x --ttl 0", "above zero and at most 2073600 (24 days)"),
        ("send orders --body x --ttl -1", "above zero and at most"),
        ("send orders --body x --ttl 2073601", "above zero and at most"),
        ("send orders --body x --ttl nan", "ttl: "),
        ("send orders --body x --ttl soon", "above zero and at most"),
        ("send orders --body x --delay -1", "not negative"),
        ("send orders --body x --ttl 5 --delay 5", "either delayed or expires"),
        ("send orders --body x --header tenant", "'tenant' is not of the form NAME=VALUE"),
        ("send orders --body x --header =north", "not of the form NAME=VALUE"),
        ("send orders --body x --header a=1 --header a=2", "header a is given more than once"),
        (
            "send orders --body x --type A --header NServiceBus.EnclosedMessageTypes=B",
            "type is also given as header",
        ),
        ("send orders --body x --skip-bad", "--skip-bad is about the lines of --jsonl"),
        ("send orders --jsonl - --type T --count 3", "leave out --count, --type"),
        ("send orders --jsonl no-such-file", "No such file"),
        ("send orders --body-file no-such-file", "No such file"),
        ("request orders", "nothing to ask; give --body or --body-file"),
        ("request orders --body x --timeout 0", "above zero and at most a day"),
        ("request orders --body x --body-file -", "--body and --body-file are both given"),
        ("request orders --body x --header a=1 --header a=2", "header a is given more than once"),
        ("pause", "missing argument 'NAME'"),
        ("pause my-orders", "'my-orders' is not a name of 1 to 100 letters, digits and underscores"),
        ("pause bücher", "letters, digits and underscores"),
        ("pause " + "x" * 101, "letters, digits and underscores"),
        ("pause orders --reason=", "it is empty"),
        ("resume a.b", "letters, digits and underscores"),
        ("pauses orders", "unexpected extra argument"),
        ("claims release 12", "'12' is not of the form CLAIM_ID@GENERATION"),
        (
            "claims release 01920000-0000-7000-8000-000000000000",
            "is not of the form CLAIM_ID@GENERATION, as claims list shows it",
        ),
        ("errors retry", "nothing to retry; give ids, --type, --exception, --from or --all"),
        ("errors discard --yes", "nothing to discard; give ids, --type, --exception, --from or --all"),
        ("errors retry --all m1", "leave out one or the other"),
        ("errors discard --all --type T --yes", "leave out one or the other"),
        ("errors discard --all", "there is no terminal to ask at, and what is discarded is gone for good; add --yes"),
        ("errors retry --all --batch 0", "not in the range"),
        ("errors retry --type=", "it is empty"),
        ("errors list --limit 0", "not in the range"),
        ("errors list --all", "no such option"),
        ("nginn --json figures", "missing argument 'QUEUE'"),
        ("nginn retry sql://a/Q", "say which failed messages: their ids, or --all; see: "),
        ("errors show", "missing argument 'ID'"),
        ("errors retry --all --error-queue x", "--error-queue stands before the command"),
        ("script orders --dialect oracle", "'oracle' is not one of"),
        ("--schema= peek orders", "it is empty"),
    ],
)
def test_a_mistake_is_named_and_no_database_is_asked(words: str, reported: str) -> None:
    refused = run("--database", AWAY, *words.split())
    assert refused.code == 2
    assert refused.out == ""
    assert reported in refused.error


@pytest.mark.parametrize(
    ("setting", "reported"),
    [
        ("oracle://u:s3cret@host/db", "unknown database scheme 'oracle'; use sqlite:///path, postgresql://"),
        ("orders.db", "the database setting has no scheme"),
        ("postgresql://u:s3cret@/db", "names no host"),
        ("postgresql://u:s3cret@host:port/db", "cannot be read"),
        ("odbc:PWD=s3cret", "unknown database scheme 'odbc'"),
        ("mssql://u:s3cret@host", "the mssql setting names no database"),
    ],
)
def test_a_database_setting_that_cannot_be_used_is_named_without_its_password(setting: str, reported: str) -> None:
    refused = run("--database", setting, "peek", "orders")
    assert refused.code == 2
    assert reported in refused.error
    assert "s3cret" not in refused.err


def test_an_empty_queue_name_is_refused() -> None:
    assert "it is empty" in run("peek", " ").error


def test_bytes_that_are_no_text_are_refused_where_text_is_needed() -> None:
    assert "not valid UTF-8" in run("peek", "\udcff").error


def test_without_a_command_the_help_is_shown() -> None:
    for words in [], ["claims"], ["errors"], ["nginn"]:
        shown = run(*words)
        assert (shown.code, shown.out) == (2, "")
        assert "Commands:" in shown.err


COMMANDS = [
    "install",
    "script",
    "send",
    "peek",
    "show",
    "receive",
    "status",
    "health",
    "purge",
    "audit-indexes",
    "claims list",
    "claims release",
    "errors list",
    "errors show",
    "errors retry",
    "errors discard",
    "move-due",
    "publish",
    "subscribe",
    "unsubscribe",
    "subscriptions",
]


@pytest.mark.parametrize("words", ["", *COMMANDS])
def test_every_command_explains_itself_and_knows_json(words: str) -> None:
    shown = run(*words.split(), "--help")
    assert (shown.code, shown.err) == (0, "")
    assert "--json" in shown.out


def test_the_help_lists_the_exit_codes() -> None:
    assert " 141  the reader of the output went away" in run("--help").out


@pytest.mark.parametrize("dialect", ["sqlserver", "postgresql", "sqlite"])
def test_the_script_of_every_dialect_names_real_tables_and_asks_no_database(dialect: str) -> None:
    printed = run("--database", AWAY, "script", "orders", "Sales.Orders", "--dialect", dialect)
    assert (printed.code, printed.err) == (0, "")
    assert printed.out.count("CREATE TABLE ") + printed.out.count("CREATE UNLOGGED TABLE ") == 13
    assert ("\nGO\n" in printed.out) is (dialect == "sqlserver")
    assert "{" not in printed.out
    document = run("script", "orders", "Sales.Orders", "--dialect", dialect, "--json").json
    assert (document["dialect"], document["script"]) == (dialect, printed.out)


def test_the_script_takes_its_dialect_and_catalog_from_the_database_setting() -> None:
    printed = run("--database", "mssql://u:p@127.0.0.1:1/Shop", "script", "orders", "--grant-to", "app")
    assert printed.code == 0
    assert "CREATE TABLE [Shop].[dbo].[orders] (" in printed.out
    assert "GRANT SELECT, INSERT, UPDATE, DELETE ON [Shop].[dbo].[orders.Claimed] TO [app];" in printed.out
    over_odbc = run("--database", "postgresql+pyodbc://u:p@127.0.0.1:1/shop", "script", "orders")
    assert 'CREATE TABLE IF NOT EXISTS "public"."orders" (' in over_odbc.out
    elsewhere = run("--schema", "s", "--catalog", "c", "script", "orders", "--dialect", "sqlserver")
    assert "CREATE TABLE [c].[s].[orders] (" in elsewhere.out


def test_the_script_of_an_odbc_string_names_no_catalog() -> None:
    setting = "mssql:///?odbc_connect=DRIVER%3Dnowhere.so%3BDATABASE%3DShop%3BPWD%3Ds3cret"
    printed = run("--database", setting, "script", "orders")
    assert printed.code == 0
    assert "CREATE TABLE [dbo].[orders] (" in printed.out
    assert "s3cret" not in printed.out
    other = run("--database", setting, "script", "orders", "--dialect", "postgresql")
    assert 'CREATE TABLE IF NOT EXISTS "public"."orders" (' in other.out


def test_the_script_of_a_name_that_is_too_long_is_refused() -> None:
    refused = run("script", "x" * 48, "--dialect", "postgresql")
    assert refused.code == 2
    assert "choose a shorter name" in refused.error


def test_the_default_database_is_not_created_by_a_script(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("QUEUE_PIPELINE_DATABASE", raising=False)
    assert run("script", "orders").code == 0
    assert list(tmp_path.iterdir()) == []
