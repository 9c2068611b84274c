"""A choice of failed messages, and what they have in common: values, no database."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from queue_pipeline.errors import ConfigurationError, validation_text
from queue_pipeline.transport.messages import headers as wire

if TYPE_CHECKING:
    from queue_pipeline.transport.inspection.browsed import BrowsedMessage

Name = Annotated[str, Field(min_length=1)]


class Group(NamedTuple):
    """What messages that failed alike have in common."""

    message_type: str | None
    exception_type: str | None
    failed_queue: str | None


class Selection(BaseModel):
    """Which failed messages are chosen: those that match all that is given, and one of the ids.

    An id is a message's or its row's. A message type is the whole header, its first entry, or the name before the
    comma; an exception is a type, with or without its namespace.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    ids: tuple[Name, ...] = ()
    message_type: Name | None = None
    exception: Name | None = None
    failed_queue: Name | None = None
    everything: bool = False

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigurationError(validation_text(error)) from None

    @model_validator(mode="after")
    def _chooses(self) -> Selection:
        narrow = bool(self.ids or self.message_type or self.exception or self.failed_queue)
        if not narrow and not self.everything:
            raise ValueError(
                "nothing is chosen; give ids, a message type, an exception or a failed queue, or choose all"
            )
        if narrow and self.everything:
            raise ValueError("all are chosen, and at the same time some of them; leave out one or the other")
        return self

    @functools.cached_property
    def _message_ids(self) -> frozenset[str]:
        return frozenset(self.ids)

    @functools.cached_property
    def _row_ids(self) -> frozenset[str]:
        return frozenset(map(str.lower, self.ids))

    def matches(self, message: BrowsedMessage, failed_in: Callable[[str], bool]) -> bool:
        """Whether a message is meant; `failed_in` says whether an address is that of the chosen queue."""
        return (
            (not self.ids or message.message_id in self._message_ids or message.id in self._row_ids)
            and (self.message_type is None or self.message_type in _type_names(message))
            and (self.exception is None or self.exception in _exception_names(message))
            and (self.failed_queue is None or (message.failed_queue is not None and failed_in(message.failed_queue)))
        )


def first_type(enclosed: str | None) -> str | None:
    """The concrete type of a message, of all that it can be taken for."""
    return (enclosed or "").partition(";")[0].strip() or None


def full_name(message_type: str) -> str:
    """A .NET type's name without its assembly, which follows the first comma outside brackets."""
    depth = 0
    for position, character in enumerate(message_type):
        depth += (character == "[") - (character == "]")
        if character == "," and depth <= 0:
            return message_type[:position].rstrip()
    return message_type


def bare_name(type_name: str) -> str:
    """A type's name without its namespace."""
    return type_name.rpartition(".")[2]


def _type_names(message: BrowsedMessage) -> set[str]:
    if message.message_type is None:
        return set()
    return {
        message.headers.get(wire.ENCLOSED_MESSAGE_TYPES, ""),
        message.message_type,
        full_name(message.message_type),
    }


def _exception_names(message: BrowsedMessage) -> set[str]:
    kind = message.exception_type
    return set() if kind is None else {kind, bare_name(kind)}
