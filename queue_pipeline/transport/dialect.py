"""What differs between databases: the files of `sql/<dialect>/`, and the few decisions declared here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from queue_pipeline.transport.address import QueueAddress, check_name
from queue_pipeline.transport.database_url import DatabaseUrl
from queue_pipeline.transport.errors import AddressError
from queue_pipeline.transport.faults import Fault
from queue_pipeline.transport.statements import Command, load_statement, placeholders

if TYPE_CHECKING:
    import pyarrow as pa

    from queue_pipeline.transport.addressing import ClaimTables, QueueTable
    from queue_pipeline.transport.database import Transaction
    from queue_pipeline.transport.row_form import RowForm

NEVER_EXPIRES = -1
"""Milliseconds that mean "no expiry" in a bound row. Not NULL: ODBC drivers have to ask the server for the
type of a NULL parameter, which costs a round trip and, on one server, earlier work of the transaction."""


class Row(NamedTuple):
    """A message on its way into a table: what every bulk insert takes."""

    id: str
    milliseconds: int
    headers: str
    body: bytes


def chunks(rows: Iterable[Row], most_rows: int, most_bytes: int) -> Iterator[list[Row]]:
    """Rows in lists that one statement can carry: bounded in number, and in bytes but for a single large one."""
    part: list[Row] = []
    size = 0
    for row in rows:
        part.append(row)
        size += len(row.headers) + len(row.body)
        if len(part) >= most_rows or size >= most_bytes:
            yield part
            part, size = [], 0
    if part:
        yield part


class Bounds(NamedTuple):
    """How much one claim may take."""

    messages: int
    bytes: int


class Taken(NamedTuple):
    """What one claim took off a queue: everything, and what of it had not expired."""

    taken: int
    messages: int
    bytes: int
    first_row_version: int | None
    may_forward: bool = True
    """Whether some of them may be on their way to another queue; a dialect that knows better says so."""


class Dialect(ABC):
    """One kind of database."""

    name: ClassVar[str]
    """Also the folder under sql/."""
    default_schema: ClassVar[str | None]
    has_catalogs: ClassVar[bool] = False
    locks_rows: ClassVar[bool] = True
    """False where one writer holds the whole database: an open receive would then block every sender."""
    rows_per_take: ClassVar[int] = 1_000_000
    """The most rows that one statement takes off a queue."""
    inspects_columns: ClassVar[bool] = False
    """True where queue tables of several versions are about, so that a table is looked at before it is used."""
    stores_nul: ClassVar[bool] = True
    """False where a text ends at a NUL character, silently."""
    copies: ClassVar[bool] = False
    """Whether the driver writes rows by COPY, through `Transaction.copy`."""
    longest_queue_name: ClassVar[int | None] = None
    """For a table without a suffix of ours, counted as `name_length` does."""

    @abstractmethod
    def connect(self, url: DatabaseUrl) -> Any:
        """Open a DB-API connection; driver errors pass through."""

    @abstractmethod
    def begin(self, connection: Any, *, write: bool) -> None:
        """Start a transaction, where the driver does not do so by itself."""

    def cursor(self, connection: Any, *, own: bool) -> Any:
        """A cursor, for a statement of the transport's own or of its caller's."""
        return connection.cursor()

    def answers(self, connection: Any) -> bool:
        """Ask an idle connection for a sign of life; driver errors pass through."""
        connection.execute("SELECT 1").fetchall()
        connection.rollback()
        return True

    @abstractmethod
    def fault(self, error: BaseException) -> Fault:
        """Classify a driver's error."""

    @abstractmethod
    def parse(self, text: str) -> QueueAddress:
        """Read an address of this family."""

    @abstractmethod
    def format(self, address: QueueAddress) -> str:
        """Write an address of this family."""

    @abstractmethod
    def quote(self, name: str) -> str:
        """Quote an identifier."""

    @abstractmethod
    def insert(
        self, transaction: Transaction, command: Command, rows: Iterable[Row], common: Sequence[Any] = ()
    ) -> None:
        """Write many messages the fastest way this database and its driver know.

        `common` are the statement's first parameters, the same for all rows.
        """

    @abstractmethod
    def take_claim(
        self, transaction: Transaction, tables: ClaimTables, columns: frozenset[str], claim_id: str, bounds: Bounds
    ) -> Taken:
        """Move messages from the head of a queue into its .Claimed table, dropping expired ones."""

    def take_in_place(
        self, transaction: Transaction, tables: ClaimTables, order: str, claim_id: str, bounds: Bounds, lease: int
    ) -> int:
        """Claim messages of an NGinn queue where they are, for so many milliseconds; returns how many.

        Several statements of a bounded number of rows, so that row locks do not become a table lock.
        """
        names: dict[str, QueueTable | str] = {"queue": tables.queue, "claimed": tables.claimed, "order": order}
        note, move, sizes = (
            self.statement(f"nginn/{name}", **names) for name in ("claim_note", "claim_move", "claim_sizes")
        )
        taken = size = 0
        while taken < bounds.messages and (taken == 0 or size < bounds.bytes):
            wanted = min(self.rows_per_take, bounds.messages - taken)
            noted = transaction.count(note, (wanted, bounds.bytes - size, claim_id, lease))
            transaction.execute(move, (claim_id,))
            taken += noted
            size = int(transaction.rows(sizes, (claim_id, 0, 2**63 - 1))[0][1])
            if noted < wanted:
                break
        return taken

    def extend_in_place(self, transaction: Transaction, tables: ClaimTables, claim_id: str, lease: int) -> None:
        """Hold the messages of a claim on an NGinn queue for so many milliseconds from now."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        transaction.execute(self.statement("nginn/claim_extend", **names), (lease, claim_id))

    def read_claimed(
        self, transaction: Transaction, tables: ClaimTables, values: tuple[str, int, int], *, body: bool
    ) -> pa.RecordBatch:
        """The claimed messages of a range as columns; `values` are the claim, the first and the last row version."""
        from queue_pipeline.transport.claimed_columns import from_rows

        name = f"{tables.queue.layout}/{'claim_read' if body else 'claim_read_headers'}"
        return from_rows(transaction.rows(self.statement(name, queue=tables.queue, claimed=tables.claimed), values))

    @abstractmethod
    def write_rows(self, transaction: Transaction, form: RowForm, rows: Sequence[Sequence[Any]]) -> None:
        """Append rows to a table of the user's own, or merge them by key, each key once and in the given order."""

    def move_due(
        self, transaction: Transaction, queue: QueueTable, delayed: QueueTable, columns: frozenset[str], limit: int
    ) -> int:
        """Move due messages into the input queue, oldest due first, and return how many."""
        names = self.optional_columns(columns)
        command = self.statement("nservicebus/move_due", queue=queue, delayed=delayed, **names)
        return transaction.count(command, (limit,))

    def mark_scope(self, transaction: Transaction, mark: str) -> None:  # noqa: B027
        """Mark a transaction in which the caller runs statements of its own, where the server needs that."""

    def scope_is_alive(self, transaction: Transaction, mark: str) -> bool:
        """Whether such a transaction is still the one that was begun; PostgreSQL refuses to answer in a failed one."""
        transaction.rows("SELECT 1")
        return True

    def optional_columns(self, columns: frozenset[str], source: str = "m") -> dict[str, str]:
        """What statements need to know of columns that some tables have and some have not; none by default."""
        return {}

    def name_length(self, name: str) -> int:
        """The length of a name as this database counts it: bytes of UTF-8."""
        return len(name.encode())

    def check_table(self, table: str) -> None:
        """Refuse a table name that this database would take for something else; most take any."""
        check_name(table)
        if not table.strip():
            raise AddressError("a queue's name is empty; give the name of a table")

    def qualify(self, address: QueueAddress) -> str:
        """The table's quoted name with all the parts that the address has."""
        parts = (address.catalog, address.schema, address.table)
        return ".".join(self.quote(part) for part in parts if part is not None)

    def literal(self, text: str) -> str:
        """A text as a string literal; only ever used for names inside DDL, values are bound."""
        return "'" + text.replace("'", "''") + "'"

    def split_script(self, text: str) -> list[str]:
        """The statements of a file that holds several."""
        return [part.strip() for part in (text + "\n").split(";\n") if part.strip()]

    def statement(self, name: str, **names: QueueTable | str) -> Command:
        """A statement of `sql/` with its identifiers filled in.

        A table under `queue` fills `{queue}` (the qualified name), `{queue_text}` (the same as a string
        literal) and `{queue_name}` (the bare table name as a string literal); text is put in as it is and must
        already be quoted.
        """
        filled: dict[str, str] = {}
        for key, value in names.items():
            if isinstance(value, str):
                filled[key] = value
            else:
                filled[key] = value.qualified
                filled[f"{key}_text"] = self.literal(value.qualified)
                filled[f"{key}_name"] = self.literal(value.table)
        subject = names.get("queue")
        if subject is not None and not isinstance(subject, str):
            filled["sys"] = f"{self.quote(subject.catalog)}.sys" if subject.catalog else "sys"
        needed = placeholders(self.name, name)
        text = load_statement(self.name, name).format_map({key: filled[key] for key in needed})
        return Command(text, subject.canonical if subject is not None and not isinstance(subject, str) else None)
