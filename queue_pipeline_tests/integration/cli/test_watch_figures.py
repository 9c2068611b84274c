"""What `status --watch` shows, on every database: its clock is the test's, and each pause brings the next event."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from queue_pipeline.cli.commands import watch
from queue_pipeline.transport import QueueTransport, new_message
from queue_pipeline_tests.support.command_line import CommandLine, Ran
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.databases.failed import fail, failure

SECONDS = 2.0


@pytest.fixture
def watched(backend: Backend, transport: QueueTransport, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Watches `orders`: between two readings an event happens, and after the last one Ctrl-C is pressed."""

    def run(*arguments: str, events: list[Callable[[], object]]) -> Ran:
        coming: Iterator[Callable[[], object]] = iter(events)
        now = 0.0

        def sleep(seconds: float) -> None:
            nonlocal now
            now += seconds
            event = next(coming, None)
            if event is None:
                raise KeyboardInterrupt
            event()

        monkeypatch.setattr(watch, "time", SimpleNamespace(monotonic=lambda: now, sleep=sleep))
        return CommandLine(backend)("status", "orders", *arguments, "--watch", SECONDS)

    return run


def receive(transport: QueueTransport, count: int) -> None:
    with transport.receive("orders", count) as batch:
        assert len(list(batch)) == count


def readings(ran: Ran) -> list[dict[str, Any]]:
    assert (ran.code, ran.err) == (0, "")
    return [json.loads(line)["queues"][0] for line in ran.out.splitlines()]


def test_rates_are_messages_per_second_between_two_readings(watched, transport):
    ran = watched(
        "--json",
        events=[
            lambda: transport.send("orders", [new_message("{}") for _ in range(6)]),
            lambda: receive(transport, 4),
            lambda: None,
        ],
    )
    rates = [(one["pending"], one["in_per_second"], one["out_per_second"]) for one in readings(ran)]
    assert rates == [(0, None, None), (6, 3.0, 0.0), (2, 0.0, 2.0), (2, 0.0, 0.0)]


def test_failed_messages_are_counted_by_the_queue_in_which_they_failed(watched, transport):
    transport.install("returns")
    ran = watched(
        "--json",
        events=[
            lambda: fail(transport, failure(transport), failure(transport, "returns")),
            lambda: fail(transport, failure(transport)),
        ],
    )
    assert [one["failed"] for one in readings(ran)] == [0, 1, 2]


def test_an_error_queue_that_cannot_be_read_leaves_the_number_open(watched, backend, transport):
    table = transport.resolve("error").qualified
    ran = watched("--json", events=[lambda: backend.sql(transport, f"DROP TABLE {table}")])
    assert [one["failed"] for one in readings(ran)] == [0, None]


def test_a_queue_whose_attempts_fail_has_a_line_with_the_reason(watched, transport):
    queue = transport.resolve("orders").canonical
    ran = watched(events=[lambda: transport.failures.add(queue, "ValueError: no price")])
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.count("in/s") == 2
    assert f"{queue}: the last attempt failed, for " in ran.out
    assert ran.out.rstrip().endswith("ValueError: no price")
