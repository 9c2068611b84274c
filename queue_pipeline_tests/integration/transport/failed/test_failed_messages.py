"""Error queues: looking through them, returning messages to their source, discarding them."""

import threading

import pytest

from queue_pipeline.errors import ConfigurationError, QueueNotFoundError
from queue_pipeline.transport import Operation, OutgoingMessage
from queue_pipeline.transport.database.dialects.dialect import BEFORE_ALL
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.send import Sender
from queue_pipeline_tests.support.databases.failed import ALL, NOON, bodies, fail, failure, raw, waiting


@pytest.fixture
def failed(transport):
    return transport.failed


# --- looking -----------------------------------------------------------------------------------------------


def test_failed_messages_are_listed_oldest_first_and_left_where_they_are(transport, failed):
    fail(transport, *(failure(transport, body=b"x" * n, **{wire.MESSAGE_ID: f"m{n}"}) for n in range(3)))
    listed = failed.list("error")
    assert [(each.message_id, each.body_size) for each in listed] == [("m0", 0), ("m1", 1), ("m2", 2)]
    first = listed[0]
    assert first.message_type == "Shop.OrderPlaced, Shop, Version=1.0.0.0"
    assert first.failed_queue == transport.resolve("orders").canonical
    assert (first.exception_type, first.exception_message) == ("Shop.NoStockError", "nothing left")
    assert (first.time_of_failure, first.problem) == (NOON, None)
    assert [each.message_id for each in failed.list("error", limit=2)] == ["m0", "m1"]
    assert [each.message_id for each in failed.list("error", Selection(ids=["m2", "m1"]))] == ["m1", "m2"]
    assert [each.message_id for each in failed.list("error", after=first.row_version)] == ["m1", "m2"]
    assert transport.peek("error") == 3


def test_an_empty_error_queue_has_nothing(transport, failed):
    assert failed.list("error") == []
    assert failed.find("error", "x") is None
    assert failed.last_row_version("error") == BEFORE_ALL
    assert failed.retry("error", ALL).done == failed.discard("error", ALL) == failed.count("error") == 0
    assert failed.count_by("error").counts == []


def test_a_list_is_not_blocked_by_a_receive_of_a_message(transport, failed, needs_row_locks):
    fail(transport, *(failure(transport, **{wire.MESSAGE_ID: f"m{n}"}) for n in range(3)))
    with transport.receive("error", 1):
        assert [each.message_id for each in failed.list("error")][-2:] == ["m1", "m2"]
        assert failed.count("error") >= 2


def test_more_than_a_page_is_looked_through(transport, failed):
    transport.send("error", [failure(transport, **{wire.MESSAGE_ID: f"m{n}"}) for n in range(1_234)])
    assert failed.count("error") == 1_234
    assert [each.message_id for each in failed.list("error", limit=1_100)] == [f"m{n}" for n in range(1_100)]
    assert failed.find("error", "m1233").message_id == "m1233"
    assert failed.missing("error", ["m1233", "m1234", "m0", "nobody"]) == ["m1234", "nobody"]


def test_a_message_is_found_with_its_body_by_its_id_and_by_that_of_its_row(transport, failed):
    fail(transport, failure(transport, body=b"\x00\xff", **{wire.MESSAGE_ID: "Mine"}), failure(transport))
    message = failed.find("error", "Mine")
    assert (message.message_id, message.body) == ("Mine", b"\x00\xff")
    assert failed.find("error", message.id.upper()) == message
    assert failed.find("error", "mine") is None
    assert failed.missing("error", [message.id.upper(), "Mine"]) == []


def test_messages_are_counted_by_what_they_have_in_common(transport, failed):
    transport.send("error", [failure(transport) for _ in range(3)] + [failure(transport, kind="E") for _ in range(2)])
    raw(transport, "no headers")
    groups = failed.count_by("error")
    assert [(group.exception_type, count) for group, count in groups.counts] == [
        ("Shop.NoStockError", 3),
        ("E", 2),
        (None, 1),
    ]
    assert (groups.messages, groups.capped) == (6, False)
    few = failed.count_by("error", limit=4)
    assert (few.messages, few.capped, len(few.counts)) == (4, True, 2)
    assert failed.count_by("error", Selection(exception="E")).messages == 2


def test_a_selection_combines_its_criteria(transport, failed):
    transport.install("billing")
    fail(
        transport,
        failure(transport, **{wire.MESSAGE_ID: "a"}),
        failure(transport, "billing", **{wire.MESSAGE_ID: "b"}),
        failure(transport, "billing", kind="Other", **{wire.MESSAGE_ID: "c"}),
        failure(transport, "billing", **{wire.MESSAGE_ID: "d", wire.ENCLOSED_MESSAGE_TYPES: "T"}),
    )

    def chosen(**given):
        return "".join(each.message_id for each in failed.list("error", Selection(**given)))

    assert chosen(failed_queue="billing") == chosen(failed_queue=transport.resolve("billing").canonical) == "bcd"
    assert chosen(failed_queue="billing", exception="NoStockError") == "bd"
    assert chosen(failed_queue="billing", exception="NoStockError", message_type="Shop.OrderPlaced") == "b"
    assert chosen(failed_queue="billing", ids=["a", "c", "d"]) == "cd"
    assert chosen(everything=True) == "abcd"


# --- returning ---------------------------------------------------------------------------------------------


def test_a_message_goes_back_as_it_was_before_it_failed(transport, failed, backend):
    before = {
        **wire.standard_headers(message_type="Shop.OrderPlaced"),
        "tenant": 'Zoë "north" \\ / \t ☃ 😀',
        wire.RETRY_UNIQUE_MESSAGE_ID: "u",
        wire.RETRY_ACKNOWLEDGEMENT_QUEUE: "Particular.ServiceControl",
        "ServiceControl.RetryTo": "x",
    }
    during = {wire.RETRIES: "2", wire.RETRIES_TIMESTAMP: "t", wire.EDIT_OF: "e", wire.FIRST_LEVEL_RETRIES: "1"}
    body = bytes(range(256))
    fail(transport, failure(transport, body=body, **before, **during))
    (row,) = failed.list("error")
    result = failed.retry("error", ALL)
    assert result.queues == {transport.resolve("orders").canonical: 1}
    assert (result.held, result.skipped, result.named) == (0, 0, [])
    with transport.receive("orders") as batch:
        (message,) = batch
    assert (message.headers, message.body) == (before, body)
    assert message.id != row.id
    assert transport.peek("error") == 0


def test_messages_go_back_in_order_each_to_its_own_queue(transport, failed):
    transport.install("billing")
    names = ["orders", "billing", "billing", "orders", "billing"]
    transport.send("error", [failure(transport, name, str(n).encode()) for n, name in enumerate(names)])
    result = failed.retry("error", ALL, batch=2)
    assert sorted(result.queues.values()) == [2, 3]
    assert (bodies(transport), bodies(transport, "billing")) == ([b"0", b"3"], [b"1", b"2", b"4"])


def test_selected_messages_are_returned_and_the_others_stay(transport, failed):
    fail(transport, *(failure(transport, kind=kind, body=kind.encode()) for kind in ("a.E", "b.E", "a.F")))
    assert failed.retry("error", Selection(exception="E")).returned == 2
    assert (bodies(transport), bodies(transport, "error")) == ([b"a.E", b"b.E"], [b"a.F"])


def test_messages_go_to_another_queue_when_one_is_named(transport, failed):
    transport.install("elsewhere")
    fail(transport, failure(transport, body=b"a"), failure(transport, "gone", body=b"b"), OutgoingMessage(b"c", {}))
    assert failed.retry("error", ALL, to="elsewhere").queues == {transport.resolve("elsewhere").canonical: 3}
    assert bodies(transport, "elsewhere") == [b"a", b"b", b"c"]
    assert all(wire.FAILED_QUEUE not in message.headers for message in waiting(transport, "elsewhere"))


def test_messages_with_the_same_id_all_go_back(transport, failed):
    """Each of them failed: the sender's deduplication would lose all but one."""
    fail(transport, *(failure(transport, body=bytes([65 + n]), **{wire.MESSAGE_ID: "same"}) for n in range(3)))
    assert failed.retry("error", Selection(ids=["same"])).returned == 3
    assert bodies(transport) == [b"A", b"B", b"C"]


def test_a_message_without_an_id_keeps_that_of_its_row(transport, failed):
    fail(transport, OutgoingMessage(b"", {wire.FAILED_QUEUE: transport.resolve("orders").canonical}))
    (row,) = failed.list("error")
    assert row.message_id == row.id
    assert failed.retry("error", Selection(ids=[row.id])).returned == 1
    (message,) = waiting(transport)
    assert message.headers == {wire.MESSAGE_ID: row.id}


def test_thousands_of_messages_are_returned_in_batches(transport, failed):
    transport.send("error", [failure(transport, body=str(n).encode()) for n in range(5_000)])
    progress = []
    assert failed.retry("error", ALL, batch=900, on_progress=progress.append).returned == 5_000
    assert progress == [900, 1800, 2700, 3600, 4500, 5000]
    assert bodies(transport) == [str(n).encode() for n in range(5_000)]
    assert transport.peek("error") == 0


def test_large_messages_go_back_a_few_at_a_time(transport, failed, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.failed.failed_messages.BATCH_BYTES", 250)
    transport.send("error", [failure(transport, body=b"x" * size) for size in (100, 100, 100, 900, 1)])
    progress = []
    assert failed.retry("error", ALL, on_progress=progress.append).returned == 5
    assert progress == [2, 3, 4, 5]


def test_what_fails_again_meanwhile_is_not_retried_again(transport, failed, monkeypatch):
    monkeypatch.setattr("queue_pipeline.transport.failed.failed_messages.PAGE", 2)
    transport.send("error", [failure(transport, **{wire.MESSAGE_ID: f"m{n}"}) for n in range(6)])
    rounds = []

    def fail_again(done):
        assert len(rounds) < 10, "retried for ever"
        rounds.append(done)
        with transport.receive("orders", 100) as batch:
            batch.send([Operation("error", failure(transport, **message.headers)) for message in batch])

    assert failed.retry("error", ALL, batch=2, on_progress=fail_again).returned == 6
    assert rounds == [2, 4, 6]
    assert [each.message_id for each in failed.list("error")] == [f"m{n}" for n in range(6)]


def test_two_retries_at_once_duplicate_and_lose_nothing(transport, backend):
    transport.send("error", [failure(transport, body=str(n).encode()) for n in range(400)])
    start, results, errors = threading.Barrier(2), [], []

    def retry():
        own = backend.transport()
        start.wait()
        try:
            results.append(own.failed.retry("error", ALL, batch=20))
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=retry) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(120)
    assert errors == []
    assert sum(result.returned for result in results) == 400
    assert sorted(int(body) for body in bodies(transport)) == list(range(400))
    assert transport.peek("error") == 0


def test_what_another_receiver_holds_is_skipped_and_reported(transport, failed, backend, needs_row_locks):
    transport.send("error", [failure(transport, body=str(n).encode()) for n in range(3)])
    with transport.receive("error", 1):
        # SQL Server does not even see it.
        result = failed.retry("error", ALL)
        assert (result.returned, result.skipped) == (2, 0)
        assert result.held == (1 if backend.name == "postgresql" else 0)
        assert failed.discard("error", ALL) == 0


@pytest.mark.parametrize("place", ["before", "after"])
def test_a_batch_that_is_killed_leaves_everything(transport, failed, monkeypatch, place):
    transport.install("billing")
    queues = ["orders", "orders", "orders", "billing"]
    transport.send("error", [failure(transport, queue, str(n).encode()) for n, queue in enumerate(queues)])
    write, calls = Sender.write, []

    def killed(self, transaction, shipments):
        calls.append(shipments)
        if len(calls) == 3 and place == "before":
            raise KeyboardInterrupt
        written = write(self, transaction, shipments)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return written

    monkeypatch.setattr(Sender, "write", killed)
    with pytest.raises(KeyboardInterrupt):
        failed.retry("error", ALL, batch=2)
    monkeypatch.undo()
    assert (bodies(transport), bodies(transport, "billing")) == ([b"0", b"1"], [])
    assert bodies(transport, "error") == [b"2", b"3"]
    assert failed.retry("error", ALL).returned == 2
    assert (bodies(transport), bodies(transport, "billing")) == ([b"0", b"1", b"2"], [b"3"])


# --- discarding, and what is refused -----------------------------------------------------------------------


def test_selected_messages_are_discarded_and_the_others_stay(transport, failed):
    transport.send("error", [failure(transport, kind="a.E" if n % 3 else "a.F") for n in range(1_500)])
    progress = []
    assert failed.discard("error", Selection(exception="E"), batch=600, on_progress=progress.append) == 1_000
    assert progress == [600, 1000]
    assert failed.count("error") == failed.count("error", Selection(exception="a.F")) == 500


def test_messages_that_failed_after_a_listing_can_be_excluded(transport, failed):
    fail(transport, failure(transport), failure(transport))
    seen = failed.last_row_version("error")
    fail(transport, failure(transport, body=b"later"))
    assert failed.count("error", ALL, up_to=seen) == 2
    assert failed.discard("error", ALL, up_to=seen) == 2
    assert failed.retry("error", ALL, up_to=seen).done == 0
    assert bodies(transport, "error") == [b"later"]


def test_a_queue_that_does_not_exist_is_an_error(transport, failed):
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        failed.list("nowhere")
    fail(transport, failure(transport))
    with pytest.raises(QueueNotFoundError, match="nowhere"):
        failed.retry("error", ALL, to="nowhere")
    with pytest.raises(ConfigurationError, match="name another destination"):
        failed.retry("error", ALL, to="error")
    assert transport.peek("error") == 1


@pytest.mark.parametrize(
    "act",
    [
        lambda failed: failed.list("error", limit=0),
        lambda failed: failed.count_by("error", limit=0),
        lambda failed: failed.retry("error", ALL, batch=0),
        lambda failed: failed.discard("error", ALL, batch=-1),
    ],
)
def test_limits_below_one_are_refused(transport, act):
    with pytest.raises(ConfigurationError, match="at least one"):
        act(transport.failed)


def test_what_version_1_kept_in_columns_goes_back_in_the_headers(sqlserver):
    transport = sqlserver.transport()
    transport.install("orders")
    fail(transport, failure(transport))
    error = transport.resolve("error").qualified
    sqlserver.sql(transport, f"UPDATE {error} SET ReplyToAddress = 'answers'")
    assert transport.failed.retry("error", ALL).returned == 1
    with transport.receive("orders") as batch:
        assert batch.messages[0].headers[wire.REPLY_TO_ADDRESS] == "answers"


def test_a_name_that_no_table_can_have_blocks_no_other_message(transport, failed):
    """Some servers refuse even to look for it."""
    fail(transport, OutgoingMessage(b"", {wire.FAILED_QUEUE: "q" * 5_000}), failure(transport))
    result = failed.retry("error", ALL)
    assert (result.returned, result.skipped) == (1, 1)
    assert "--to" in result.named[0].reason
