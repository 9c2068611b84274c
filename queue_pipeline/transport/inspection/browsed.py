"""Messages that were looked at, as plain objects, as Arrow and as pandas; no database."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from queue_pipeline.transport.extras import needed_by
from queue_pipeline.transport.failed.failed_message import Group, first_type
from queue_pipeline.transport.messages import headers as wire

if TYPE_CHECKING:
    import pyarrow as pa

COLUMNS = ("row_version", "id", "message_id", "message_type", "sent", "expires", "expired", "problem")
FAILURE_COLUMNS = ("failed_queue", "exception_type", "exception_message", "time_of_failure")
MOMENTS = ("sent", "expires", "time_of_failure")
BODY, PAYLOAD = "body", "payload"
_NAMES = {*COLUMNS, *FAILURE_COLUMNS, BODY, PAYLOAD}


@dataclass(frozen=True, slots=True)
class BrowsedMessage:
    """A message as it is stored. `problem` says why its headers cannot be read; then there are none."""

    id: str
    row_version: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)
    expired: bool = False
    problem: str | None = None
    expires: datetime | None = None
    """When it expires, where the table has a column for that; NGinn keeps it in a header."""
    raw_headers: str | None = field(default=None, repr=False)
    """The headers as they are stored."""
    body_size: int = 0
    """Bytes of the stored body, also where the body was left out; not known of an NGinn queue."""

    @property
    def message_id(self) -> str:
        """The id that its sender gave it, else that of its row."""
        return self.headers.get(wire.MESSAGE_ID) or self.id

    @property
    def message_type(self) -> str | None:
        """The .NET type, the first of several."""
        return first_type(self.headers.get(wire.ENCLOSED_MESSAGE_TYPES))

    @property
    def sent(self) -> datetime | None:
        """When its sender sent it."""
        return _moment(self.headers.get(wire.TIME_SENT))

    @property
    def failed_queue(self) -> str | None:
        """The queue in which it failed."""
        return self.headers.get(wire.FAILED_QUEUE) or None

    @property
    def exception_type(self) -> str | None:
        """The error that it failed with."""
        return self.headers.get(wire.EXCEPTION_TYPE) or None

    @property
    def exception_message(self) -> str | None:
        """The text of that error."""
        return self.headers.get(wire.EXCEPTION_MESSAGE) or None

    @property
    def stack_trace(self) -> str | None:
        """Where that error was raised."""
        return self.headers.get(wire.EXCEPTION_STACK_TRACE) or None

    @property
    def time_of_failure(self) -> datetime | None:
        """When it failed."""
        return _moment(self.headers.get(wire.TIME_OF_FAILURE))


class BodiesWithPayload(Protocol):
    """Typed bodies, and what is wrong with those that have none."""

    @property
    def payload(self) -> Any:
        """An Arrow array with a value for each body, null where it has a problem."""

    @property
    def problems(self) -> Mapping[int, Any]:
        """By the position of the body; `message` says what is wrong with it."""


class Parser(Protocol):
    """Makes typed columns of bodies: `body_parser(schema)` of `queue_pipeline.processing.body.parse`."""

    def parse(self, bodies: Any, /) -> BodiesWithPayload:
        """Typed values of an Arrow array of bodies."""


class Browsed(Sequence[BrowsedMessage]):
    """Messages of a queue that were looked at, oldest first. They are where they were."""

    def __init__(self, queue: str, messages: Sequence[BrowsedMessage], *, failed: bool = False) -> None:
        """With `failed`, tables have the columns of a failure, too."""
        self.queue = queue
        self.failed = failed
        self._messages = tuple(messages)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._messages)

    def __getitem__(self, at: Any) -> Any:
        """A message, or some of them."""
        found = self._messages[at]
        return Browsed(self.queue, found, failed=self.failed) if isinstance(at, slice) else found

    def __iter__(self) -> Iterator[BrowsedMessage]:
        """Each of them."""
        return iter(self._messages)

    def __repr__(self) -> str:
        """How many messages of which queue."""
        return f"<{len(self)} {'failed ' if self.failed else ''}messages of {self.queue}>"

    def to_arrow(self, *, headers: bool | Sequence[str] = (), body: Parser | None = None) -> pa.Table:
        """One row per message.

        `headers` names headers that become columns, True means all that there are. With a parser the bodies become the
        column `payload`, a struct, and `problem` says what is wrong with those that it refuses; without one, or beside
        a refusal, `body` has the bytes.
        """
        with needed_by("a table of messages"):
            import pyarrow as pa

        moment = pa.timestamp("us", "UTC")
        kinds: dict[str, Any] = {"row_version": pa.int64(), "expired": pa.bool_(), BODY: pa.binary()}
        kinds |= dict.fromkeys(MOMENTS, moment)
        values = self.columns(headers=headers)
        columns = {name: pa.array(column, kinds.get(name, pa.string())) for name, column in values.items()}
        if body is not None:
            parsed = body.parse(columns[BODY])
            texts = [
                parsed.problems[at].message if at in parsed.problems else known
                for at, known in enumerate(values["problem"])
            ]
            columns |= {"problem": pa.array(texts, pa.string()), PAYLOAD: parsed.payload}
        return pa.table(columns)

    def columns(self, *, headers: bool | Sequence[str] = ()) -> dict[str, list[Any]]:
        """The same as plain values by column, with the bytes of bodies."""
        names = (*COLUMNS, *(FAILURE_COLUMNS if self.failed else ()), BODY)
        found = {name: [getattr(one, name) for one in self] for name in names}
        for name in self.header_names() if headers is True else headers or ():
            # A program may have a header of the name of a column.
            found[f"headers.{name}" if name in _NAMES else name] = [one.headers.get(name) for one in self]
        return found

    def to_pandas(self, *, headers: bool | Sequence[str] = (), body: Parser | None = None) -> Any:
        """The same as a pandas DataFrame; with a parser each field of a body is a column, such as `payload.Country`."""
        table = self.to_arrow(headers=headers, body=body)
        with needed_by("a table of messages"):
            return table.flatten().to_pandas()

    def header_names(self) -> list[str]:
        """Every header that one of the messages has, in alphabetical order."""
        return sorted({name for one in self for name in one.headers})

    def by_cause(self) -> dict[Group, Browsed]:
        """Failed messages that have their type, their error and their queue in common; the most frequent first."""
        found: dict[Group, list[BrowsedMessage]] = {}
        for one in self:
            found.setdefault(Group(one.message_type, one.exception_type, one.failed_queue), []).append(one)
        largest = sorted(found.items(), key=lambda group: -len(group[1]))
        return {cause: Browsed(self.queue, messages, failed=self.failed) for cause, messages in largest}


def _moment(text: str | None) -> datetime | None:
    try:
        return wire.parse_timestamp(text) if text else None
    except ValueError:
        return None
