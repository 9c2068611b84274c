"""What happens to messages that fail: the policy, and its decisions as functions of what was counted."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from queue_pipeline.transport.database.backoff import Backoff
from queue_pipeline.transport.messages import headers as wire

LONGEST_RETRYING = timedelta(hours=24)
"""A message whose last delayed retry is older than this is not tried again: its sender has given up long ago."""


def _error_name(value: object) -> object:
    if isinstance(value, type) and issubclass(value, BaseException):
        return f"{value.__module__}.{value.__qualname__}"
    return value


class Recoverability(BaseModel):
    """How often a message is tried before it goes to the error queue, and when a failing pipeline slows down."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    immediate_retries: int = Field(default=5, ge=0, le=1_000, description="further attempts at once")
    delayed_retries: int = Field(default=3, ge=0, le=1_000, description="how often it waits and is tried anew")
    delayed_retry_seconds: float = Field(
        default=10.0, gt=0, le=86_400, description="how much longer each wait is than the one before"
    )
    unrecoverable: tuple[Annotated[str, BeforeValidator(_error_name)], ...] = Field(
        default=(), description="exceptions, or their names, that no retry fixes"
    )
    rate_limit_after: int | None = Field(
        default=20, ge=1, description="failed attempts in a row, after which one batch at a time is tried; None: never"
    )
    rate_limit_seconds: float = Field(default=1.0, gt=0, le=3_600, description="the pause after each failure then")
    alike_failures: int = Field(
        default=3,
        ge=1,
        le=1_000,
        description="different messages that fail alone and alike, without a success, before none of them is to blame",
    )
    backoff_seconds: float = Field(
        default=5.0, gt=0, le=86_400, description="the pause after the second failed run in a row; then twice as long"
    )
    longest_backoff_seconds: float = Field(
        default=300.0, gt=0, le=86_400, description="the longest pause between failed runs"
    )

    @property
    def backoff(self) -> Backoff:
        """The pauses between failed runs; the first failure is tried again at once."""
        return Backoff(self.backoff_seconds, max(self.backoff_seconds, self.longest_backoff_seconds))

    @property
    def attempts(self) -> int:
        """How often a message is tried in all."""
        return (self.immediate_retries + 1) * (self.delayed_retries + 1)

    def is_unrecoverable(self, names: Collection[str]) -> bool:
        """Whether an error, by any of its names, is one that no retry fixes."""
        return not set(self.unrecoverable).isdisjoint(names)

    def is_limited(self, failures_in_a_row: int) -> bool:
        """Whether this many failed attempts in a row mean that one batch at a time is enough."""
        return self.rate_limit_after is not None and failures_in_a_row >= self.rate_limit_after


NO_RETRIES = Recoverability(immediate_retries=0, delayed_retries=0)


@dataclass(frozen=True, slots=True)
class DelayedRetry:
    """A message is tried again later: for which time, and after how long."""

    number: int
    delay: timedelta


def delayed_retry(
    policy: Recoverability, headers: Mapping[str, str], now: datetime, schedule: Sequence[float] | None = None
) -> DelayedRetry | None:
    """The next delayed retry of a message that was given up for now; None: it has failed for good.

    `schedule` has the waits that an NGinn queue is configured with; they hold unless the policy states its own.
    """
    performed, waits = _number(headers.get(wire.RETRIES)), schedule
    if waits is None or policy.model_fields_set & {"delayed_retries", "delayed_retry_seconds"}:
        waits = [policy.delayed_retry_seconds * number for number in range(1, policy.delayed_retries + 1)]
    if performed >= len(waits) or (schedule is None and _is_stale(headers.get(wire.RETRIES_TIMESTAMP), now)):
        return None
    return DelayedRetry(performed + 1, timedelta(seconds=waits[performed]))


def retry_headers(headers: Mapping[str, str], retry: DelayedRetry, now: datetime, forward_to: str) -> dict[str, str]:
    """The headers of a message that comes back later to the queue that it failed in."""
    return {
        wire.DELIVER_AT: wire.format_timestamp(now + retry.delay),
        **headers,
        wire.RETRIES: str(retry.number),
        wire.RETRIES_TIMESTAMP: wire.format_timestamp(now),
        wire.FORWARD_DESTINATION: forward_to,
    }


def _number(text: str | None) -> int:
    """What another endpoint wrote there may be no number; then no retry is known of."""
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 10 else 0


def _is_stale(text: str | None, now: datetime) -> bool:
    try:
        return text is not None and now - wire.parse_timestamp(text) > LONGEST_RETRYING
    except ValueError:
        return False
