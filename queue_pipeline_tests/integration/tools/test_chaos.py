"""The standing adversary: its accountant misses nothing, it leaves nothing behind; half a minute of it with --all."""

from __future__ import annotations

import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from queue_pipeline_tests.support.waiting import eventually
from tools.chaos.faults import BACKENDS, COMMIT_CUTS, CUTS, KILLED, RESTARTS, STOPPED
from tools.chaos.worker import KINDS
from tools.processes import MARK, Processes

pytestmark = pytest.mark.heavy

SEED = 20
SECONDS = 25
START_SECONDS = 120.0


def start(*arguments: str, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "tools.chaos", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, **environment},
    )


def differences(report: dict) -> dict[str, int]:
    return {kind: report[kind] for kind in ("lost", "doubled", "changed", "left over", "never sent")}


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_no_message_is_lost_duplicated_changed_or_left_over_under_any_kind_of_fault():
    process = start("--seconds", str(SECONDS), "--seed", str(SEED), "--json")
    output, errors = process.communicate()
    print(f"seed {SEED}\n{output}\n{errors}")
    report = json.loads(output)
    assert differences(report) == dict.fromkeys(differences(report), 0)
    assert process.returncode == 0
    assert report["unexpected"] == {}
    assert {one["database"] for one in report["databases"] if one["sent"]} == {
        "postgresql",
        "postgresql, NGinn",
        "sqlite",
    }
    faults = {name for name, count in report["faults"].items() if count}
    assert faults == {KILLED, STOPPED, BACKENDS, RESTARTS, CUTS, COMMIT_CUTS}
    # Each kind of worker did its work, and did not only start.
    done = {kind: set(report["work"][kind]) for kind in KINDS}
    assert done["sender"] >= {"sent", "delayed", "rolled back"}
    assert done["publisher"] >= {"published"}
    assert done["receiver"] >= {"received in sends_atomic_with_receive", "received in transaction_scope"}
    assert done["claimer"] >= {"completed", "adopted", "lost its claim"}
    assert done["stager"] >= {"staged", "completed", "zombies"}
    assert done["run"] >= {"processed"}
    assert done["mover"] >= {"moved"}
    assert done["retrier"] >= {"looks"}


def test_a_message_deleted_duplicated_or_changed_from_outside_is_named(tmp_path: Path):
    file = tmp_path / "queues.db"
    process = start("--seconds", "3", "--seed", "7", "--json", "--database", f"sqlite:///{file}")
    try:
        deleted, doubled, changed, mixed = eventually(lambda: tamper(file, process), seconds=START_SECONDS)
        output, errors = process.communicate()
        print(output, errors)
    finally:
        process.kill()
    report = json.loads(output)
    assert process.returncode == 1
    assert not report["right"]
    assert differences(report) == {"lost": 1, "doubled": 1, "changed": 3, "left over": 0, "never sent": 1}
    (account,) = report["databases"]
    assert [without_kind(line) for line in account["lost"]] == [f"message {deleted} is not in results"]
    assert [without_kind(line) for line in account["doubled"]] == [f"message {doubled} is 2 times in results, not 1"]
    assert set(account["changed"]) == {
        f"message {changed} in results: body",
        f"message {mixed} in results: Chaos.Text",
        "message 77 in results: Chaos.Text, Chaos.Digest, NServiceBus.CorrelationId, NServiceBus.MessageId, body",
    }
    assert list(account["never sent"]) == ["message 77 was rolled back or never sent"]
    assert not list(tmp_path.iterdir())


def without_kind(line: str) -> str:
    return re.sub(r" \(\w+\)", "", line)


def tamper(file: Path, process: subprocess.Popen[str]) -> tuple[int, ...]:
    """Change results, which no worker reads, as soon as there are some; returns whose."""
    assert process.poll() is None, process.communicate()
    if not file.exists():
        return ()
    with closing(sqlite3.connect(file, timeout=30)) as connection, connection:
        try:
            rows = connection.execute(
                "SELECT RowVersion, Headers FROM results WHERE length(Body) > 0 LIMIT 4"
            ).fetchall()
        except sqlite3.OperationalError:
            return ()
        if len(rows) < 4:
            return ()
        versions, numbers = [row[0] for row in rows], [int(json.loads(row[1])["Chaos.Number"]) for row in rows]
        connection.execute("DELETE FROM results WHERE RowVersion = ?", versions[:1])
        copy = "INSERT INTO results (Id, Headers, Body) SELECT Id || 'x', {}, Body FROM results WHERE RowVersion = ?"
        connection.execute(copy.format("Headers"), versions[1:2])
        connection.execute("UPDATE results SET Body = CAST(Body || 'x' AS BLOB) WHERE RowVersion = ?", versions[2:3])
        text = "json_set(Headers, '$.\"Chaos.Text\"', 'other')"
        connection.execute(f"UPDATE results SET Headers = {text} WHERE RowVersion = ?", versions[3:4])
        ghost = json.dumps({"Chaos.Number": "77", "NServiceBus.MessageId": "77", "Chaos.Trail": "a- b-"})
        connection.execute("INSERT INTO results (Id, Headers, Body) VALUES ('ghost', ?, x'')", (ghost,))
        return tuple(numbers)


def test_an_interrupted_run_leaves_no_process_and_no_file(folder: Path):
    processes = Processes(folder, {})
    process = start("--seconds", "600", "--seed", "1", TMPDIR=str(folder), **{MARK: processes.mark})
    # The coordinator, a fork server, its tracker, the proxy, PostgreSQL's processes and more workers than these.
    eventually(lambda: len(processes.alive()) > 20, seconds=START_SECONDS)
    process.send_signal(signal.SIGINT)
    process.communicate()
    assert process.returncode == 130
    assert eventually(lambda: not processes.alive())
    assert list(folder.iterdir()) == []
