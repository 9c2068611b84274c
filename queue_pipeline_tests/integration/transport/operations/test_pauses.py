"""Pauses: seen by every process that asks the database, and kept until they are taken back."""

import getpass
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest

from queue_pipeline.cli.commands import pauses as command
from queue_pipeline.errors import ConfigurationError, TableNotFoundError
from queue_pipeline_tests.support.command_line import CommandLine


def test_nothing_is_paused_at_first(transport):
    assert transport.pauses.list() == {}


def test_a_pause_is_seen_by_others_until_it_is_ended(transport, backend):
    assert transport.pauses.pause("orders_pipeline", "ann@desk", "the bank is closed, grüße 🏦") is True
    assert transport.pauses.pause("other", "ann@desk") is True
    seen = backend.transport().pauses.list()
    assert list(seen) == ["orders_pipeline", "other"]
    pause = seen["orders_pipeline"]
    assert (pause.name, pause.by, pause.reason) == ("orders_pipeline", "ann@desk", "the bank is closed, grüße 🏦")
    assert 0 <= pause.since_seconds < 60
    assert seen["other"].reason == ""
    assert backend.transport().pauses.resume("orders_pipeline") is True
    assert list(transport.pauses.list()) == ["other"]
    assert transport.pauses.resume("orders_pipeline") is False


def test_the_first_reason_stays(transport):
    assert transport.pauses.pause("p", "ann", "first") is True
    assert transport.pauses.pause("p", "bob", "second") is False
    pause = transport.pauses.list()["p"]
    assert (pause.by, pause.reason) == ("ann", "first")


def test_only_one_of_several_simultaneous_pauses_is_the_first(transport, backend):
    if backend.is_babelfish:
        pytest.skip("needs lock hints, which Babelfish ignores")
    for name in ("a", "b", "c"):
        with ThreadPoolExecutor(4) as threads:
            changed = list(threads.map(lambda n, name=name: transport.pauses.pause(name, f"user {n}"), range(4)))
        assert sorted(changed) == [False, False, False, True]
        assert transport.pauses.list()[name].by == f"user {changed.index(True)}"


def test_a_missing_table_is_an_error_that_says_how_to_create_it(transport, backend):
    backend.sql(transport, f"DROP TABLE {transport.book.own('QueuePauses').qualified}")
    for act in (
        transport.pauses.list,
        lambda: transport.pauses.pause("p", "ann"),
        lambda: transport.pauses.resume("p"),
    ):
        with pytest.raises(TableNotFoundError, match=r"(?i)queuepauses.*: queue-pipeline install QUEUE"):
            act()
    assert any(installed.created for installed in transport.install("orders"))
    assert transport.pauses.pause("p", "ann") is True


@pytest.mark.parametrize(
    ("name", "by", "reason", "complaint"),
    [
        ("", "ann", "", "1 to 200"),
        ("x" * 201, "ann", "", "1 to 200"),
        ("p", "", "", "pause of p: .*who"),
        ("p", "ann", "x" * 1001, "pause of p: a reason of 1001 characters"),
    ],
)
def test_what_the_table_could_not_hold_is_refused(transport, name, by, reason, complaint):
    with pytest.raises(ConfigurationError, match=complaint):
        transport.pauses.pause(name, by, reason)
    assert transport.pauses.list() == {}


# --- the command line --------------------------------------------------------------------------------------


@pytest.fixture
def cli(backend):
    cli = CommandLine(backend)
    assert cli("install", "orders").code == 0
    return cli


def test_an_operator_pauses_looks_and_resumes(cli):
    assert cli("pauses").out == "nothing is paused\n"
    assert cli("pause", "orders_pipeline", "--reason", "stock-taking").out == "paused orders_pipeline\n"
    again = cli("pause", "orders_pipeline", "--by", "bob")
    who = f"{getpass.getuser()}@{socket.gethostname()}"
    assert again.code == 0
    assert again.out.startswith("orders_pipeline is paused already, for ")
    assert f"by {who}: stock-taking" in again.out
    listed = cli("pauses").out
    assert "stock-taking" in listed and who in listed
    assert cli("resume", "orders_pipeline").out == "resumed orders_pipeline\n"
    late = cli("resume", "orders_pipeline")
    assert (late.code, late.out) == (0, "orders_pipeline is not paused\n")


def test_scripts_get_json(cli):
    paused = cli("pause", "p", "--by", "ci", "--json").json
    assert (paused["changed"], paused["pause"]["by"], paused["pause"]["reason"]) == (True, "ci", "")
    assert cli("pause", "p", "--json").json["changed"] is False
    (pause,) = cli("pauses", "--json").json["pauses"]
    assert (pause["name"], pause["by"]) == ("p", "ci")
    assert cli("resume", "p", "--json").json == {"name": "p", "changed": True}
    assert cli("resume", "p", "--json").json == {"name": "p", "changed": False}
    assert cli("pauses", "--json").json == {"pauses": []}


def test_pausing_where_nothing_is_installed_names_the_next_step(backend):
    failed = CommandLine(backend)("pause", "p")
    assert failed.code == 3
    assert "queue-pipeline install QUEUE" in failed.error


def test_a_user_without_a_name_is_shown_as_a_number(monkeypatch):
    def nameless():
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr(getpass, "getuser", nameless)
    assert command.whoami().partition("@")[0].isdigit()
