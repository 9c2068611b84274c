"""What the audit makes of a described queue table: a function of values, without a database."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.index_audit.description import TableDescription

SEQUENCE_ALARM = 0.8
"""The part of a sequence that may be used up before it becomes a warning."""

_LARGEST = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}


class Severity(enum.StrEnum):
    """How much a finding matters."""

    WARNING = "warning"
    INFO = "info"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something wrong with a queue's tables: what it is, what it costs, and the SQL that fixes it."""

    queue: str
    code: str
    severity: Severity
    message: str
    cost: str
    fix: str
    section: str
    """Where that SQL stands, with its reason and its locks."""

    def __str__(self) -> str:
        fix = " ".join(line.strip() for line in self.fix.splitlines())
        return f"{self.message}; {self.cost}; fix it with: {fix}"


@dataclass(frozen=True, slots=True)
class _IndexRule:
    name: str
    column: str
    cost: str
    whole: bool = True
    of_delayed: bool = False


# An index on Expires may be filtered or not, with included columns or without: what versions made will do.
_INDEXES = (
    _IndexRule("row_version", "rowversion", "every receive and every peek sorts the whole table"),
    _IndexRule("expires", "expires", "every purge of expired messages reads the whole table", whole=False),
    _IndexRule("due", "due", "every look for due messages reads all delayed ones", of_delayed=True),
)


_COLUMNS = ("id", "expires", "headers", "body")
_NGINN_COLUMNS = (
    "id",
    "from_endpoint",
    "to_endpoint",
    "subqueue",
    "retry_time",
    "msg_text",
    "msg_headers",
    "unique_id",
)


def missing_columns(dialect: Dialect, queue: TableDescription) -> list[str]:
    """The columns that make a table a queue and that this one has not."""
    return [name for name in (*_COLUMNS, dialect.row_version) if name not in queue.columns]


def nginn_findings(dialect: Dialect, queue: TableDescription) -> list[Finding]:
    """What is wrong with an NGinn queue: the index without which every look at it reads all processed messages too."""
    if missing := [name for name in _NGINN_COLUMNS if name not in queue.columns]:
        raise ConfigurationError(
            f"{queue.table} is no NGinn queue: its table lacks {', '.join(missing)}; name the table of a queue"
        )
    if queue.index_on("subqueue"):
        return []
    index = dialect.quote(f"IDX_{queue.table.table}_subqueue_retry_time")
    fix = dialect.statement("audit.fix_subqueue_index", queue=queue.table, index=index)
    message = f"queue {queue.table}: index {index} on subqueue of {queue.table.qualified} is missing"
    cost = "every receive and every peek reads all messages, processed ones included"
    return [_finding(queue, "missing_subqueue_index", message, cost, fix)]


def _finding(
    queue: TableDescription,
    code: str,
    message: str,
    cost: str,
    fix: Command,
    severity: Severity = Severity.WARNING,
) -> Finding:
    return Finding(queue.table.canonical, code, severity, message, cost, fix.script, fix.section or "")


class QueueAudit:
    """Decides what is wrong with one queue; `delayed` is its `.Delayed` table, where there is one."""

    def __init__(self, dialect: Dialect, queue: TableDescription, delayed: TableDescription | None) -> None:
        self._dialect = dialect
        self._queue = queue
        self._delayed = delayed
        self._row_version = dialect.row_version

    def findings(self) -> list[Finding]:
        """Everything, the worst first."""
        found = [
            *self.missing_indexes(),
            *self._wrong_types(),
            *self._short_sequence(),
            *self._bloat(self._queue),
        ]
        if self._delayed:
            found += self._bloat(self._delayed)
        return sorted(found, key=lambda finding: finding.severity is not Severity.WARNING)

    def missing_indexes(self) -> list[Finding]:
        """Only what makes receiving, purging and moving due messages slow."""
        return [finding for rule in _INDEXES for finding in self._missing_index(rule)]

    def _missing_index(self, rule: _IndexRule) -> Iterator[Finding]:
        described = self._delayed if rule.of_delayed else self._queue
        column = self._row_version if rule.column == "rowversion" else rule.column
        if described is None or described.index_on(column, whole=rule.whole):
            return
        index = self._free_name(described, column)
        # Only SQL Server has named clustered indexes; a table that has one on another column keeps it.
        beside = "_beside" if any(i.clustered and i.name for i in described.indexes) else ""
        yield _finding(
            self._queue,
            f"missing_{rule.name}_index",
            f"queue {self._queue.table}: index {index} on {column} of {described.table.qualified} is missing",
            rule.cost,
            self._fix(
                f"{rule.name}_index{beside if rule.name == 'row_version' else ''}",
                delayed=described.table,
                index=index,
            ),
        )

    def _wrong_types(self) -> Iterator[Finding]:
        queue = self._queue
        for column, rule in self._dialect.column_types.items():
            found = queue.columns[column]
            if found == rule.expected or found in rule.accepted:
                continue
            name = "row_version" if column == self._row_version else column
            yield _finding(
                self._queue,
                rule.codes.get(found, "wrong_column_type"),
                f"queue {queue.table}: column {column} is {found or 'untyped'} and should be {rule.expected}",
                rule.cost,
                self._fix(
                    f"{name}_type",
                    row_version_index=self._present_name(self._row_version),
                    expires_index=self._present_name("expires"),
                    replacement=self._dialect.quote(f"{queue.table.table}.Rebuilt"),
                ),
            )

    def _short_sequence(self) -> Iterator[Finding]:
        queue, sequence = self._queue, self._queue.sequence
        limit = _LARGEST.get(queue.columns[self._row_version]) if self._dialect.has("audit.sequence") else None
        if limit is None:
            return
        if sequence is not None:
            limit = min(limit, sequence.largest)
        if limit == _LARGEST["bigint"]:
            return
        last = sequence.last if sequence is not None else None
        used = "an unknown part" if last is None else f"{100 * last // limit} %"
        alarming = last is not None and last >= SEQUENCE_ALARM * limit
        yield _finding(
            self._queue,
            "short_sequence",
            f"queue {queue.table}: its sequence ends at {limit:,}, and {used} of that is used",
            "every send fails for good when it is used up",
            self._fix("row_version_type") if sequence is None else self._fix("sequence_type", sequence=sequence.name),
            Severity.WARNING if alarming else Severity.INFO,
        )

    def _bloat(self, described: TableDescription) -> Iterator[Finding]:
        size = described.size
        if size is None or not size.bloated:
            return
        table = described.table
        pages = f"{size.pages:,} pages for {size.rows:,} rows"
        where = f"queue {self._queue.table}: {table.qualified} has {pages}"
        if size.mostly_dead:
            if not size.vacuumed_lately:
                yield _finding(
                    self._queue,
                    "dead_rows",
                    f"{where} and {size.dead_rows:,} dead ones",
                    "every receive walks over the dead rows until they are vacuumed",
                    self._fix("dead_rows", queue=table),
                )
            return
        # PostgreSQL receives by an index, past the empty pages; SQL Server scans its heaps time and again.
        scans = self._dialect.reads_heaps
        cost = "receive and peek read all of them" if scans else "they take room, and a scan reads all of them"
        yield _finding(
            self._queue,
            "page_bloat",
            where,
            f"{cost} (fixing it locks the table while it runs)",
            self._fix("page_bloat", queue=table),
            Severity.WARNING if scans else Severity.INFO,
        )

    def _fix(self, name: str, queue: QueueTable | None = None, **names: QueueTable | str) -> Command:
        return self._dialect.statement(f"audit.fix_{name}", queue=queue or self._queue.table, **names)

    def _usual_name(self, described: TableDescription, column: str) -> str:
        suffix = {"rowversion": "RowVersion", "seq": "seq_key"}.get(column, column.capitalize())
        return self._dialect.index_name(described.table.table, suffix)

    def _free_name(self, described: TableDescription, column: str) -> str:
        """A name for a new index, quoted; the usual one may be taken by an index that does not serve."""
        taken = {index.name.lower() for index in described.indexes if index.name}
        usual = self._usual_name(described, column)
        names = chain([usual], (f"{usual}_{number}" for number in count(2)))
        return self._dialect.quote(next(name for name in names if name.lower() not in taken))

    def _present_name(self, column: str) -> str:
        index = self._queue.index_on(column, whole=False)
        return self._dialect.quote(index.name if index and index.name else self._usual_name(self._queue, column))
