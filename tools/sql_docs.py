"""`python -m tools.sql_docs` writes docs/sql.md: every statement of `sql/`, its reason and its locks, for a DBA."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from queue_pipeline.transport.database.statements import Section, sections

DIALECTS = {"sqlserver": "SQL Server", "postgresql": "PostgreSQL", "sqlite": "SQLite"}
PAGE = Path(__file__).parents[1] / "docs" / "sql.md"
_SUBJECTS = {
    "session": "What every connection runs first, and how a transaction is watched.",
    "schema": "Tables that belong to this package, created by `queue-pipeline install`.",
    "claim_table": "Claims: batches in work (`QueueClaims`).",
    "outbox": "Results that executors staged until their claim is completed (`QueueOutbox`).",
    "operations": "Slots of running batches, pauses, failures in a row.",
    "subscriptions": "Who wants which event types.",
    "user_tables": "Rows of the user's own tables, written with a completion.",
    "audit": "What `queue-pipeline audit-indexes` reads, and the statements that it proposes.",
    "nservicebus/queue": "Queue tables of NServiceBus: send, receive, peek, delayed messages.",
    "nservicebus/claim_messages": "The messages of a claim, in the table `<queue>.Claimed`.",
    "nservicebus/failed": "Messages in an error queue.",
    "nservicebus/schema": "The tables of a queue.",
    "nginn/queue": "Queue tables of NGinn.MessageBus.",
    "nginn/claim_messages": "The messages of a claim on an NGinn queue, which stay where they are.",
    "nginn/bus": "Sequences and subscriptions of NGinn.MessageBus.",
    "nginn/schema": "The tables of an NGinn queue.",
}


def page() -> str:
    """The whole page."""
    found = {dialect: {section.name: section for section in sections(dialect)} for dialect in DIALECTS}
    names = list(dict.fromkeys(name for of_dialect in found.values() for name in of_dialect))
    lines = [
        "# Every SQL statement",
        "",
        "All SQL that this package runs is in `sql/<dialect>/<subject>.sql`, one section per statement. This page is",
        "made of the comments there (`python -m tools.sql_docs`). Values are bound (`:name`), names in braces are",
        "quoted identifiers. `queue-pipeline script` prints what an installation creates, without a connection.",
        "",
    ]
    for subject, purpose in _SUBJECTS.items():
        of_subject = [name for name in names if name.rpartition(".")[0] == subject]
        links = ", ".join(
            f"[{title}](../sql/{dialect}/{subject}.sql)"
            for dialect, title in DIALECTS.items()
            if any(name in found[dialect] for name in of_subject)
        )
        lines += [f"## {subject}", "", f"{purpose} Text: {links}.", "", "| statement | why | locks |", "|---|---|---|"]
        lines += [_row(name, {dialect: of[name] for dialect, of in found.items() if name in of}) for name in of_subject]
        lines.append("")
    if left := sorted({name.rpartition(".")[0] for name in names} ^ _SUBJECTS.keys()):
        raise SystemExit(f"tools.sql_docs: either sql/ or _SUBJECTS lacks {', '.join(left)}")
    return "\n".join(lines).rstrip() + "\n"


def _row(name: str, by_dialect: Mapping[str, Section]) -> str:
    reasons, locks = {}, {}
    for dialect, section in by_dialect.items():
        reason, _, lock = section.comment.partition("Locks: ")
        reasons[dialect], locks[dialect] = reason.strip(), lock.strip().rstrip(".")
    only = "" if len(by_dialect) == len(DIALECTS) else f" ({', '.join(DIALECTS[dialect] for dialect in by_dialect)})"
    return f"| `{name.rpartition('.')[2]}`{only} | {_by_text(reasons)} | {_by_text(locks)} |"


def _by_text(texts: Mapping[str, str]) -> str:
    """One text if all dialects say the same, else each with its dialects."""
    by_text: dict[str, list[str]] = {}
    for dialect, text in texts.items():
        by_text.setdefault(text.replace("|", "\\|"), []).append(DIALECTS[dialect])
    if len(by_text) == 1:
        return next(iter(by_text))
    return "<br>".join(f"{', '.join(named)}: {text}" for text, named in by_text.items())


def main() -> None:
    """Write the page."""
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
