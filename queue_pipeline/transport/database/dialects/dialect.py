"""What differs between databases: the files of `sql/<dialect>/`, and the few decisions declared here."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from queue_pipeline.errors import AddressError
from queue_pipeline.transport.addresses.address import QueueAddress, check_name
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.faults import Fault
from queue_pipeline.transport.database.statements import braces, has_statement, load_statement

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from queue_pipeline.transport.addresses.queues import ClaimTables, QueueTable
    from queue_pipeline.transport.database.transaction import Transaction

NEVER_EXPIRES = -1
"""Milliseconds that mean "no expiry" in a bound row. Not NULL: ODBC drivers have to ask the server for the
type of a NULL parameter, which costs a round trip and, on one server, earlier work of the transaction."""
BEFORE_ALL = -(2**63)
"""A row version that no message is before: a sequence may have been restarted below zero."""


class Row(NamedTuple):
    """A message on its way into a table: what every bulk insert takes."""

    id: str
    milliseconds: int
    headers: str
    body: bytes


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


@dataclass(frozen=True, slots=True)
class ColumnType:
    """The type that a column of a queue should have, and what another one costs."""

    expected: str
    cost: str
    accepted: frozenset[str] = frozenset()
    codes: Mapping[str, str] = field(default_factory=dict)
    """Codes of findings about types that are a known matter of their own."""


NO_UUID = "endpoints write and read it as a uuid, and fail on what is none"
NO_BYTES = "bodies are bytes, and are altered or refused on their way through another type"


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
    row_version: ClassVar[str] = "rowversion"
    """The column that orders the messages of a queue, in lower case."""
    name_unit: ClassVar[str] = "characters"
    """What `name_length` counts."""
    dots_end_schemas: ClassVar[bool] = False
    """Whether a dot in an address ends a schema."""
    column_types: ClassVar[Mapping[str, ColumnType]]
    """The types of a queue's columns; of columns that hold any value there are none."""
    new_row: ClassVar[str] = "EXCLUDED"
    """What a merge calls the row that it was given."""
    reads_heaps: ClassVar[bool] = False
    """Whether receiving reads the empty pages of a table, too."""
    script_separator: ClassVar[str] = "\n"
    """What stands between the statements of a script."""
    longest_queue_name: ClassVar[int | None] = None
    """For a table without a suffix of ours, counted as `name_length` does."""

    def session(self) -> list[str]:
        """What every new connection runs first."""
        return [load_statement(self.name, "session.open")]

    def refusal(self, cursor: Any) -> str | None:
        """Why queues cannot be in the database that a new connection leads to, and the next step."""
        return None

    def begin(self, connection: Connection, *, write: bool) -> None:  # noqa: B027
        """Begin a transaction, where the driver does not do so with the first statement."""

    @abstractmethod
    def fault(self, error: BaseException) -> Fault:
        """Classify a driver's error."""

    @staticmethod
    @abstractmethod
    def parse(text: str) -> QueueAddress:
        """Read an address of this family."""

    @staticmethod
    @abstractmethod
    def format(address: QueueAddress) -> str:
        """Write an address of this family."""

    @staticmethod
    @abstractmethod
    def quote(name: str) -> str:
        """Quote an identifier."""

    @abstractmethod
    def take_claim(
        self, transaction: Transaction, take: Command, tables: ClaimTables, claim_id: str, bounds: Bounds
    ) -> Taken:
        """Move messages from the head of a queue into its .Claimed table, dropping expired ones; `take` begins it."""

    def take_in_place(
        self, transaction: Transaction, tables: ClaimTables, order: str, claim_id: str, bounds: Bounds, lease: int
    ) -> int:
        """Claim messages of an NGinn queue where they are, in bounded statements: row locks become no table lock."""
        names: dict[str, QueueTable | str] = {"queue": tables.queue, "claimed": tables.claimed, "order": order}
        note, move, sizes = (
            self.statement(f"nginn/claim_messages.{name}", **names) for name in ("note", "move", "sizes")
        )
        taken = size = 0
        while taken < bounds.messages and (taken == 0 or size < bounds.bytes):
            wanted = min(self.rows_per_take, bounds.messages - taken)
            noted = transaction.count(note, messages=wanted, bytes=bounds.bytes - size, claim_id=claim_id, lease=lease)
            transaction.execute(move, claim_id=claim_id)
            taken += noted
            size = int(transaction.rows(sizes, claim_id=claim_id)[0][1])
            if noted < wanted:
                break
        return taken

    def extend_in_place(self, transaction: Transaction, tables: ClaimTables, claim_id: str, lease: int) -> None:
        """Hold the messages of a claim on an NGinn queue for `lease` milliseconds from now."""
        names = {"queue": tables.queue, "claimed": tables.claimed}
        transaction.execute(self.statement("nginn/claim_messages.extend", **names), lease=lease, claim_id=claim_id)

    def user_table_steps(self, *, merge: bool, changes: bool) -> tuple[str, ...]:
        """The sections of `user_tables` that append rows, or merge them by key."""
        return (("merge" if changes else "merge_keys") if merge else "append",)

    def change(self, column: str, *, add: bool) -> str:
        """What a merge does to one column."""
        new = f"{self.new_row}.{column}"
        return f"{column} = COALESCE(stored.{column}, 0) + COALESCE({new}, 0)" if add else f"{column} = {new}"

    def moment(self, value: str) -> str:
        """How a date with a time of day stands in a row."""
        return value

    def guid(self, value: str) -> str:
        """How a GUID stands in a condition; SQLite keeps it as text."""
        return value

    def stored(self, value: Any) -> Any:
        """A value of a user's own row as the driver takes it."""
        return value

    def as_read(self, text: str) -> str | bytes:
        """A text as it was read, in the form in which `queue.dead_letter` writes it back unchanged."""
        return text

    def mark_scope(self, transaction: Transaction, mark: str) -> None:  # noqa: B027
        """Mark a transaction in which the caller runs statements of its own, where the server needs that."""

    def scope_is_alive(self, transaction: Transaction, mark: str) -> bool:
        """Whether such a transaction is still the one that was begun; PostgreSQL refuses to answer in a failed one."""
        transaction.rows(Command("SELECT 1"))
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

    def index_name(self, table: str, suffix: str) -> str:
        """The name that the installer gives an index."""
        return f"{table}_{suffix}"

    def installer_lock(self, qualified: str) -> int | str | None:
        """What installers of a table lock, .NET ones included; nothing where the write lock is enough."""
        return None

    def has(self, name: str) -> bool:
        """Whether there is such a statement; one that a dialect lacks is a step that it does not have."""
        return has_statement(self.name, name)

    def literal(self, text: str) -> str:
        """A text as a string literal; only ever used for names inside DDL, values are bound."""
        return "'" + text.replace("'", "''") + "'"

    def split_script(self, text: str) -> list[str]:
        """The statements of a file that holds several."""
        return [part.strip() for part in (text + "\n").split(";\n") if part.strip()]

    def statement(self, name: str, **names: QueueTable | str) -> Command:
        """A statement of `sql/` with its identifiers filled in.

        A table under `queue` fills `{queue}` (the qualified name), `{queue_text}` (the same as a string
        literal) and `{queue_name}` (the bare table name as a string literal); text is put in unchanged and must
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
        # A colon in a name is no value.
        needed = {key: filled[key].replace(":", r"\:") for key in braces(self.name, name)}
        text = load_statement(self.name, name).format_map(needed)
        queue = subject.canonical if subject is not None and not isinstance(subject, str) else None
        file, _, section = name.rpartition(".")
        return Command(text, queue, section=f"sql/{self.name}/{file}.sql: {section}")
