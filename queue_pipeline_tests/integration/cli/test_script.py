"""What `script` prints is what `install` does: it runs as it is, twice, and leaves nothing for the audit."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from queue_pipeline_tests.support.command_line import CommandLine, run
from queue_pipeline_tests.support.databases.backends import Backend
from tools.postgres_cluster import PostgresCluster


def test_the_script_runs_on_postgresql(postgresql: Backend, postgres: PostgresCluster) -> None:
    cli = CommandLine(postgresql)
    printed = cli("script", "orders", '"Sales.Orders"', "--body-string")
    assert printed.code == 0
    for _ in range(2):
        postgres.run_sql(printed.out)
    _works(cli)


def test_the_script_runs_on_sqlite(tmp_path: Path, sqlite: Backend) -> None:
    printed = CommandLine(sqlite)("script", "orders", "Sales.Orders")
    assert not (tmp_path / "queues.db").exists(), "no database is asked"
    connection = sqlite3.connect(tmp_path / "queues.db")
    for _ in range(2):
        connection.executescript(printed.out)
    connection.close()
    _works(CommandLine(sqlite))


def test_the_script_runs_on_a_tsql_server(sqlserver: Backend) -> None:
    assert sqlserver.schema is not None
    for option in [], ["--heap", "--body-string"]:
        queue = "orders" if not option else "heap"
        printed = run("--schema", sqlserver.schema, "script", queue, "--dialect", "sqlserver", *option)
        assert printed.code == 0
        for _ in range(2):
            _run_batches(sqlserver, printed.out)
    cli = CommandLine(sqlserver)
    assert cli("send", "heap", "--body", "{}", "--count", 2).code == 0
    assert cli("receive", "heap", "--max", 2, "--json").json["received"] == 2
    _works(cli, audit=["orders"])


def test_the_script_and_the_installation_agree(backend: Backend) -> None:
    cli = CommandLine(backend)
    lines = cli("script", "orders").out.splitlines()
    announced = {line[3:] for line in lines if line.startswith("-- ") and not line.startswith("-- sql/")}
    made = {table["table"] for table in cli("install", "orders", "--json").json["tables"]}
    assert announced == made


def _works(cli: CommandLine, audit: list[str] | None = None) -> None:
    assert cli("audit-indexes", *(audit or [])).out == "no findings\n"
    assert cli("send", "orders", "--body", "{}", "--count", 2).code == 0
    assert cli("send", "orders", "--body", "x", "--delay", 60).code == 0
    assert cli("receive", "orders", "--max", 5, "--json").json["received"] == 2
    assert cli("claims", "list", "--json").json["claims"] == []


def _run_batches(backend: Backend, script: str) -> None:
    """Run a script as sqlcmd does: batch by batch, cut at the lines that say GO."""
    transport = backend.transport()
    for batch in (script + "\n").split("\nGO\n"):
        if batch.strip():
            backend.sql(transport, batch)
