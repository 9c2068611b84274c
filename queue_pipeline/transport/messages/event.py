"""Events: a .NET type, and the types above it by which subscribers may ask for it."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from queue_pipeline.errors import ConfigurationError, validation_text
from queue_pipeline.transport.messages import headers as wire

LONGEST_TOPIC = 200
ROOT = "System.Object"
"""What every class descends from: its subscribers get a copy of every event."""


class Event(BaseModel):
    """An event type, as .NET names it, with its base classes and interfaces.

    `parents` are ordered from the nearest to the farthest; an `interface` does not descend from `System.Object`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    type: str
    parents: tuple[str, ...] = ()
    interface: bool = False
    content_type: str = Field(default="application/json", description="of the bodies that a pipeline publishes")
    description: str | None = None

    def __init__(self, type: str, parents: Any = (), **values: Any) -> None:
        try:
            super().__init__(type=type, parents=parents, **values)
        except ValidationError as error:
            raise ConfigurationError(f"event {type!r}: {validation_text(error)}") from None

    @field_validator("type", "parents")
    @classmethod
    def _types(cls, value: Any) -> Any:
        for one in (value,) if isinstance(value, str) else value:
            try:
                full_name(one)
            except ConfigurationError as error:
                raise ValueError(str(error)) from None
        return value

    @model_validator(mode="after")
    def _no_type_twice(self) -> Event:
        names = [self.name, *map(full_name, self.parents)]
        if repeated := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"{', '.join(repeated)} is named more than once among the type and its parents")
        return self

    @property
    def name(self) -> str:
        """The type's full name, without its assembly: what it is called by subscribers and by `publish`."""
        return full_name(self.type)

    @property
    def topics(self) -> tuple[str, ...]:
        """Everything by which the event can be subscribed to: its type, all types above it, and what is above all."""
        root = () if self.interface else (ROOT,)
        return tuple(dict.fromkeys((self.name, *map(full_name, self.parents), *root)))

    @property
    def enclosed_types(self) -> str:
        """The types as the header of a message lists them, the event's own first; those that only mark are left out."""
        unlisted = wire.MARKER_INTERFACES | {ROOT}
        return ";".join(one.strip() for one in (self.type, *self.parents) if full_name(one) not in unlisted)


def event_of(event: Event | str) -> Event:
    """An event that was given by its name alone has no parents."""
    return Event(event) if isinstance(event, str) else event


def full_name(type_name: str) -> str:
    """A type's name without its assembly: `Shop.Placed` of `Shop.Placed, Shop`; generic arguments keep theirs."""
    depth, end, escaped = 0, len(type_name), False
    for position, character in enumerate(type_name):
        if escaped or character == "\\":
            escaped = not escaped
        elif character == "," and depth == 0:
            end = position
            break
        else:
            depth += {"[": 1, "]": -1}.get(character, 0)
    name = type_name[:end].strip()
    if not name or depth != 0:
        raise ConfigurationError(f"{type_name!r} is no name of a type; give it as .NET does: Namespace.Type")
    if ";" in name or not name.isprintable():
        raise ConfigurationError(f"the type {type_name!r} holds a character that no name of a type has")
    check_width("topic", name)
    return name


def check_width(what: str, text: str) -> None:
    """Refuse what the table of subscriptions could not hold, counted as SQL Server does."""
    size = len(text.encode("utf-16-le", "surrogatepass")) // 2
    if size > LONGEST_TOPIC:
        raise ConfigurationError(
            f"the {what} {text[:60]!r}… has {size} characters, and the table of subscriptions has room for "
            f"{LONGEST_TOPIC}; choose a shorter one"
        )
