"""Whatever a message causes is counted, and ends in the error queue alone: neighbours are processed."""

import pytest

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.transport.addresses.queues import CLAIMS_TABLE, FAILURES_TABLE
from queue_pipeline.transport.claims.failure_counts import UNSTORABLE
from queue_pipeline.transport.failed.error_message import LONGEST_MESSAGE
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import (
    AT_ONCE,
    bodies,
    declare,
    fill,
    headers,
    run,
    succeed_once,
)


class Mute(Exception):
    """An exception that cannot be written."""

    def __str__(self):
        raise RuntimeError("no words")


class Mumbling(Exception):
    """An exception whose text is none."""

    def __str__(self):
        return 5


class Leaving(Exception):
    """An exception that ends the process where it is written."""

    def __str__(self):
        raise SystemExit(1)


class Shy(Exception):
    """An exception that raises wherever it is looked at."""

    @property
    def __notes__(self):
        raise ValueError("not these")

    @property
    def data(self):
        raise ValueError("nor those")


ERRORS = {
    "NUL": lambda: ValueError("unknown country \0"),
    "half a surrogate pair": lambda: ValueError("unknown country \ud83d"),
    "the other half": lambda: ValueError("\ude00 unknown country"),
    "bytes that are no UTF-8": lambda: ValueError(b"unknown \xff".decode(errors="surrogateescape")),
    "nothing but NUL": lambda: ValueError("\0"),
    "beyond the first plane": lambda: ValueError("\U0001f600" * 5_000),
    "50 MB": lambda: ValueError("x\0" * 25_000_000),
    "mute": Mute,
    "mumbling": Mumbling,
    "leaving": Leaving,
    "shy": Shy,
    "a name of another kind": lambda: type("Bad\ud83d\0Name", (Exception,), {})("so it is"),
}


def failing_with(make, body=b"3"):
    def work(found):
        if body in found:
            raise make()

    return PlainTransformer(work)


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
def test_a_failure_that_cannot_be_described_fails_its_message_alone(transport, make):
    fill(transport, 8)
    transformer = failing_with(make)
    ended, attempts = run(transport, transformer)
    assert ended.failure is None
    assert bodies(transport, "billing") == [0, 1, 2, 4, 5, 6, 7]
    assert bodies(transport, "error") == [3]
    assert transformer.alone[b"3"] == AT_ONCE.attempts
    assert sum(attempted.failure is not None for attempted in attempts) >= AT_ONCE.attempts
    assert transport.claims.list() == []
    (reported,) = headers(transport, "error")
    assert reported[wire.EXCEPTION_TYPE]
    assert len(reported[wire.EXCEPTION_MESSAGE]) <= LONGEST_MESSAGE
    assert "\n   at " in reported[wire.EXCEPTION_STACK_TRACE]


@pytest.mark.parametrize("make", ERRORS.values(), ids=ERRORS)
def test_each_of_its_attempts_is_counted(transport, make):
    fill(transport, 1)
    claim = transport.claim("orders", "one", 10)
    recover(transport, claim, failing_with(make, b"0"))
    (status,) = transport.claims.list()
    assert status.failures == 1
    assert status.last_error
    assert transport.failures.list()[transport.resolve("orders").canonical].failures == 1


@pytest.mark.parametrize("table", [CLAIMS_TABLE, FAILURES_TABLE])
def test_an_error_that_a_table_refuses_is_counted_with_a_fixed_text(transport, backend, table):
    """Whatever a database refuses, and for whatever reason: the count does not depend on the text."""
    refuse(transport, backend, table, "unspeakable")
    fill(transport, 4)
    transformer = failing_with(lambda: ValueError("unspeakable"))
    _, last = transport.claims.split(transport.claim("orders", "one", 10), 3)
    recover(transport, last, transformer)
    assert [one.last_error for one in transport.claims.list()] == [None, UNSTORABLE]
    transport.claims.release_owner("one")
    ended, _ = run(transport, transformer)
    assert ended.failure is None
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0, 1, 2], [3])


def test_an_unreliable_batch_counts_it_too(transport, backend):
    refuse(transport, backend, FAILURES_TABLE, "unspeakable")
    fill(transport, 4)
    pipeline = declare(transaction_mode="unreliable", recoverability=Recoverability(immediate_retries=0))
    ended, _ = run(transport, failing_with(lambda: ValueError("unspeakable \0")), pipeline)
    assert ended.failure is None
    assert (bodies(transport, "billing"), bodies(transport, "error")) == ([0, 1, 2], [3])


def recover(transport, claim, transformer):
    from queue_pipeline.processing.run.recovery import Recovery

    recovery = Recovery(declare(), transport, transformer)
    succeed_once(recovery)
    return recovery.attempt(claim)


def refuse(transport, backend, table, words):
    """Have a table refuse an error with certain words, as a check or a code page would."""
    name = transport.book.own(table).qualified
    if backend.name == "postgresql":
        backend.sql(transport, f"ALTER TABLE {name} ADD CHECK (strpos(last_error, '{words}') = 0)")
        return
    for event in ("INSERT", "UPDATE"):
        backend.sql(
            transport,
            f"CREATE TRIGGER refuse_{table}_{event} BEFORE {event} ON {name} WHEN instr(NEW.LastError, '{words}') > 0 "
            "BEGIN SELECT RAISE(ABORT, 'not these words'); END",
        )
