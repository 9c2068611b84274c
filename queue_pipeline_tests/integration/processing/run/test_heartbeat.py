import logging

import pytest
from sqlalchemy import create_engine

from queue_pipeline.processing.run.heartbeat import Heartbeat
from queue_pipeline.transport import OutgoingMessage, QueueTransport
from queue_pipeline_tests.support.waiting import eventually


@pytest.fixture
def held(transport):
    transport.send("orders", [OutgoingMessage(str(n).encode(), {}) for n in range(4)])
    return [transport.claim("orders", "me", 2, lease_seconds=30) for _ in range(2)]


def leases(transport):
    return {claim.claim_id: claim.lease_seconds for claim in transport.claims.list()}


def test_a_beat_renews_every_claim_that_is_held(transport, held):
    heartbeat = Heartbeat(transport.claims, 600)
    heartbeat.hold(held[0])
    heartbeat.beat()
    lease = leases(transport)
    assert lease[held[0].claim_id] > 500
    assert lease[held[1].claim_id] <= 30


def test_a_released_claim_is_no_longer_renewed(transport, held):
    heartbeat = Heartbeat(transport.claims, 600)
    heartbeat.hold(held[0])
    heartbeat.hold(held[1])
    heartbeat.let_go(held[0])
    heartbeat.beat()
    assert heartbeat.held == [held[1]]
    assert leases(transport)[held[0].claim_id] <= 30


def test_a_claim_that_another_took_is_dropped_and_the_others_are_renewed(transport, held, caplog):
    heartbeat = Heartbeat(transport.claims, 600)
    for claim in held:
        heartbeat.hold(claim)
    transport.claims.adopt(held[0], "another")
    with caplog.at_level(logging.WARNING):
        heartbeat.beat()
    assert heartbeat.held == [held[1]]
    assert leases(transport)[held[1].claim_id] > 500
    assert f"claim {held[0].claim_id}" in caplog.text


def test_an_unavailable_database_is_logged_and_the_claim_is_kept(sqlite, caplog):
    from queue_pipeline.errors import DatabaseUnavailableError

    transport = sqlite.transport()
    transport.install("orders")
    transport.send("orders", OutgoingMessage(b"1", {}))
    claim = transport.claim("orders", "me", 1, lease_seconds=30)
    away = QueueTransport(create_engine(sqlite.url, creator=_failing(DatabaseUnavailableError("no server answers"))))
    heartbeat = Heartbeat(away.claims, 600)
    heartbeat.hold(claim)
    with caplog.at_level(logging.WARNING):
        assert not heartbeat.beat(), "so that it is tried again soon"
    assert heartbeat.held == [claim]
    assert "could not be renewed" in caplog.text
    assert "no server answers" in caplog.text


def _failing(error):
    def connect(*_, **__):
        raise error

    return connect


def test_a_heartbeat_beats_by_itself_while_it_is_open(transport, held):
    assert leases(transport)[held[0].claim_id] > 2
    with Heartbeat(transport.claims, 1.0) as heartbeat:
        heartbeat.hold(held[0])
        # What is left is less than was given at first: a lease of this heartbeat is shorter.
        eventually(lambda: leases(transport)[held[0].claim_id] <= 1.0)
    assert leases(transport)[held[1].claim_id] > 2
