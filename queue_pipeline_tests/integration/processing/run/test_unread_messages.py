"""Reading is part of what is counted: a message that cannot be read leaves alone and unchanged, and stops no other."""

import uuid

import pytest

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.transport.claims import claim_reader
from queue_pipeline_tests.support.databases.hostile_rows import HostileRow, insert, stored
from queue_pipeline_tests.support.nginn.nginn_bus import ORDERS, Bus, body_of
from queue_pipeline_tests.support.nginn.nginn_bus import settings as nginn_settings
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import AT_ONCE, bodies, declare, fill, run, succeed_once

MODES = ("unreliable", "receive_only", "sends_atomic_with_receive", "transaction_scope")
LARGE = b"8" * 5_000


@pytest.fixture
def small_limit(monkeypatch):
    """What is too large for a reader, so that a test need not write gigabytes."""
    monkeypatch.setattr(claim_reader, "LARGEST_MESSAGE", 4_000)


def fill_with_large(transport, backend, count=7, at=3):
    fill(transport, at)
    insert(transport, backend, "orders", [HostileRow(str(uuid.uuid4()), b'{"own":"large"}', LARGE)])
    fill(transport, count - at, start=at)


@pytest.mark.usefixtures("small_limit")
@pytest.mark.parametrize("mode", MODES)
def test_a_message_that_is_too_large_goes_to_the_error_queue_as_it_is(transport, backend, mode):
    fill_with_large(transport, backend)
    policy = Recoverability(immediate_retries=0 if mode == "unreliable" else 2, delayed_retries=0)
    ended, attempts = run(transport, PlainTransformer(), declare(transaction_mode=mode, recoverability=policy))
    assert ended.failure is None
    assert bodies(transport, "billing") == list(range(7))
    assert stored(transport, backend, "error") == [(b'{"own":"large"}', LARGE)]
    assert transport.claims.list() == []
    failed = [one for attempted in attempts for report in attempted.reports for one in report.failed]
    assert [one.error_type for one in failed] == ["MessageHeadersUnreadable"]
    assert "5,015 bytes" in failed[0].error


@pytest.mark.usefixtures("small_limit")
def test_each_attempt_to_read_it_is_counted(transport, backend):
    insert(transport, backend, "orders", [HostileRow(str(uuid.uuid4()), b"{}", LARGE)])
    recovery, counted = Recovery(declare(), transport, PlainTransformer()), []
    succeed_once(recovery)
    (claim,) = again = [transport.claim("orders", "me", 10)]
    while again:
        again = list(recovery.attempt(claim).again)
        counted += [(one.failures, one.last_error) for one in transport.claims.list()]
        claim = again[0] if again else claim
    assert [failures for failures, _ in counted] == list(range(1, AT_ONCE.attempts))
    assert all(error.startswith("MessageTooLargeError: ") for _, error in counted)
    assert len(stored(transport, backend, "error")) == 1


@pytest.mark.usefixtures("small_limit")
def test_a_failed_message_of_nginn_stays_in_its_queue(backend):
    transport = backend.transport(nginn=nginn_settings())
    transport.install(ORDERS, plain_queues=["results", "error"])
    bus = Bus(backend, transport)
    for number in range(4):
        bus.insert(body_of(number) if number != 2 else '{"n":"' + "8" * 5_000 + '"}', unique_id=f"m{number}")
    pipeline = declare(input_queue=ORDERS, recoverability=Recoverability(immediate_retries=1, delayed_retries=0))
    ended, _ = run(transport, PlainTransformer(queue="results"), pipeline)
    assert ended.failure is None
    assert bus.subqueues() == "XXFX"
    assert len(transport.show("results", 10)) == 3
