"""Arguments and options that commands share, and their types, which refuse invalid values without a database."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any, TypeVar

import click

from queue_pipeline.transport.messages.message import LONGEST_DELAY, LONGEST_TIME_TO_LIVE

F = TypeVar("F", bound=Callable[..., Any])

SHORTEST_TIME_TO_LIVE = 0.001
"""Seconds: the database counts milliseconds."""


class Text(click.ParamType):  # type: ignore[type-arg]  # takes no argument before click 8.4
    """Text that is not empty and that a database can store."""

    name = "text"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse empty text, and bytes that are not valid in the terminal's encoding."""
        if not value.strip():
            self.fail("it is empty", param, ctx)
        if any("\ud800" <= character <= "\udfff" for character in value):
            self.fail(f"{value!r} is not valid UTF-8", param, ctx)
        return value


class Matching(Text):
    """Text of one form."""

    def __init__(self, form: str, rule: str) -> None:
        self._form = re.compile(form)
        self._rule = rule

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse other text; the error says what is expected."""
        if not self._form.fullmatch(super().convert(value, param, ctx)):
            self.fail(f"{value!r} is not {self._rule}", param, ctx)
        return value


class Seconds(click.FloatRange):
    """A duration within bounds that a message can carry."""

    name = "seconds"

    def __init__(self, shortest: float, longest: float, rule: str) -> None:
        super().__init__(shortest, longest)
        self._rule = rule

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Refuse what is out of bounds; the error says what is allowed."""
        try:
            return float(super().convert(value, param, ctx))
        except click.BadParameter:
            self.fail(f"{value!r} is not {self._rule}", param, ctx)


class Header(Text):
    """One header as NAME=VALUE; the value may be empty, and may hold further equals signs."""

    name = "header"

    def convert(  # type: ignore[override]
        self, value: str, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Cut at the first equals sign."""
        name, separator, content = super().convert(value, param, ctx).partition("=")
        if not separator or not name.strip():
            self.fail(f"{value!r} is not of the form NAME=VALUE", param, ctx)
        return name, content


# A mistyped name would pause nothing.
PIPELINE_NAME = Matching(r"[A-Za-z0-9_]{1,100}", "a name of 1 to 100 letters, digits and underscores")
# An id without a generation could take the claim from its present holder.
CLAIM = Matching(
    r"[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}@[1-9][0-9]*",
    "of the form CLAIM_ID@GENERATION, as claims list shows it",
)
# A database counts in 32 bits; more would fail there with words that name no option.
POSITIVE = click.IntRange(min=1, max=2**31 - 1)
TIME_TO_LIVE = Seconds(
    SHORTEST_TIME_TO_LIVE,
    LONGEST_TIME_TO_LIVE.total_seconds(),
    f"a number of seconds above zero and at most {LONGEST_TIME_TO_LIVE.total_seconds():.0f} "
    f"({LONGEST_TIME_TO_LIVE.days} days); leave it out for messages that never expire",
)
DELAY = Seconds(0, LONGEST_DELAY.total_seconds(), "a number of seconds, not negative and at most a hundred years")


def options(*several: Callable[[Any], Any]) -> Callable[[F], F]:
    """Arguments and options as one decorator, in the order in which the help shows them."""

    def add(command: F) -> F:
        return functools.reduce(lambda decorated, option: option(decorated), reversed(several), command)

    return add


def number(name: str, dest: str | None = None, default: int | None = None, *, help: str) -> Callable[[F], F]:
    """An option that takes a whole number from 1."""
    names = [name] if dest is None else [name, dest]
    return click.option(*names, type=POSITIVE, metavar="N", default=default, show_default=True, help=help)


pipeline_argument = click.argument("name", type=PIPELINE_NAME, metavar="NAME")
queue_argument = click.argument("queue", type=Text(), metavar="QUEUE")
queues_argument = click.argument("queues", type=Text(), nargs=-1, required=True, metavar="QUEUE...")
any_queues_argument = click.argument("queues", type=Text(), nargs=-1, metavar="[QUEUE...]")
