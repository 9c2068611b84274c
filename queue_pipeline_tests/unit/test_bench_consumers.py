import importlib.util
import json
import uuid

import click
import pytest

from queue_pipeline.transport import headers as wire
from queue_pipeline_tests.benchmarks.__main__ import check_extra
from queue_pipeline_tests.benchmarks.comparison import PEERS, best_peer, ratios
from queue_pipeline_tests.benchmarks.consumers.invoices import MESSAGE_TYPE, invoice, result, results
from queue_pipeline_tests.benchmarks.workload import make_messages


def test_an_invoice_is_the_order_with_its_total():
    order = {"order": 7, "customer": "c", "placed": "today", "note": "n", "lines": []}
    order["lines"] = [{"sku": "a", "quantity": 2, "price": 1.5}, {"sku": "b", "quantity": 1, "price": 0.25}]
    assert json.loads(invoice(json.dumps(order).encode())) == {
        "order": 7,
        "customer": "c",
        "note": "n",
        "lines": order["lines"],
        "total": 3.25,
    }


def test_a_result_is_related_to_its_message_and_has_an_id_of_its_own():
    (message,) = make_messages(1)
    identity, text, body = result(dict(message.headers), message.body)
    headers = wire.decode(text)
    assert headers[wire.MESSAGE_ID] == str(identity) != message.headers[wire.MESSAGE_ID]
    assert headers[wire.RELATED_TO] == message.headers[wire.MESSAGE_ID]
    assert headers[wire.CONVERSATION_ID] == message.headers[wire.CONVERSATION_ID]
    assert headers[wire.CORRELATION_ID] == message.headers[wire.CORRELATION_ID]
    assert headers[wire.ENCLOSED_MESSAGE_TYPES] == MESSAGE_TYPE
    assert headers[wire.MESSAGE_INTENT] == "Send"
    assert body == invoice(message.body)


def test_results_of_a_batch_have_different_ids_in_ascending_order():
    messages = make_messages(50)
    made = list(results([(wire.encode(message.headers), message.body) for message in messages], len(messages)))
    identities = [identity for identity, _, _ in made]
    assert all(isinstance(identity, uuid.UUID) for identity in identities)
    assert sorted(set(identities)) == identities
    assert [json.loads(body)["order"] for _, _, body in made] == list(range(50))


def test_the_best_peer_is_the_fastest_that_does_the_same_work():
    speed = {name: [1.0, 1.0] for name in (*PEERS, "pipeline", "executors")}
    speed |= {"psycopg_10000_x2": [20.0, 40.0], "jdbc": [90.0, 90.0], "move": [100.0, 100.0], "pipeline": [40.0, 40.0]}
    assert best_peer(speed) == "psycopg_10000_x2"
    told = ratios(speed)
    assert told["pipeline_vs_best_peer"] == [2.0, 1.0]
    assert told["pipeline_vs_hand_written"] == [40.0, 40.0]
    assert told["pipeline_vs_move"] == [0.4, 0.4]
    assert told["pipeline_vs_single_message"] == [40.0, 40.0]


def test_a_missing_extra_is_told_with_the_command_that_installs_it(monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "pgqueuer" else object())
    with pytest.raises(click.ClickException, match=r"pgqueuer not installed; run scripts/bootstrap bench"):
        check_extra()
