"""Results are related to their messages, then separated into sends, failures and rows for tables."""

from dataclasses import replace
from functools import partial

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.batch.claimed_batch import SCHEMA
from queue_pipeline.processing.batch.messages_frame import ORIGIN, ORIGIN_FIELDS
from queue_pipeline.processing.declaration.outcomes import OUTCOME, OUTCOME_FIELDS
from queue_pipeline.processing.declaration.pipeline import Output
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.results.outcome_writer import outcome_messages, plain_sending, written_messages
from queue_pipeline.processing.results.sorting import (
    FIELDS,
    NO_REASON,
    NO_REPLY_ADDRESS,
    REFUSED,
    ROW_VERSION,
    check_sends,
    in_order,
    look_up_origin,
    sort_outcomes,
    unpacked,
    with_origin,
)
from queue_pipeline.transport import Claim
from queue_pipeline_tests.support.processing.outcome_tables import (
    add_to,
    append_to,
    fail,
    message,
    publish,
    related,
    reply,
    returned,
    send,
    written,
)

SENDING = plain_sending(Claim("c", "orders", "me", 1, 1, 0, 1))
TO_BILLING = replace(SENDING, outputs={"billing": Output(queue="billing")})


def batch(numbers):
    """Messages as they were claimed."""
    rows = [
        {
            "id": f"row{n}",
            "row_version": n,
            "headers": "{}",
            "body": b"",
            "message_id": f"message{n}",
            "correlation_id": None if n % 2 else f"correlation{n}",
            "conversation_id": f"talk{n}",
            "reply_to": f"shop{n}" if n % 3 else None,
            "saga_id": None if n % 4 else f"saga{n}",
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def results(messages, numbers):
    """A row of (origin, outcomes) for each number."""
    by_number = {row[ROW_VERSION]: row for row in messages.to_pylist()}
    rows = []
    for at, number in enumerate(numbers):
        origin = {name: by_number[number][name] for name in ORIGIN_FIELDS}
        rows.append((origin, None if at % 3 == 0 else send(body=b"%d" % at), reply() if at % 2 else None))
    return returned(*rows)


def only_numbers(numbers):
    """Rows of (row_version, outcome) as the driver collects them."""
    outcomes = returned(*((message(n), send()) for n in numbers)).drop_columns([ORIGIN])
    return pa.table({ROW_VERSION: pa.array(numbers, pa.int64()), "_0": outcomes["_0"]})


def reasons(found):
    return [(one.error_type, one.message, version) for version, one in found.failures.items()]


def sent_ids(found):
    return [identity for part in found.sends for identity in part["id"].to_pylist()]


def table_rows(found):
    return [(part.table, part.key, part.rows.to_pylist()) for part in found.tables]


# --- origins -----------------------------------------------------------------------------------------------


@settings(deadline=None)
@given(st.lists(st.integers(-3, 40), unique=True, min_size=1), st.data())
def test_looked_up_origins_equal_those_that_come_with_the_results(known, data):
    """In any order, with several results for a message and none for another, in one chunk or several."""
    numbers = data.draw(st.lists(st.sampled_from(known), max_size=30))
    cut = data.draw(st.integers(0, len(numbers)))
    messages = batch(known)
    rows = results(messages, numbers)
    rows = pa.concat_tables([rows.slice(0, cut), rows.slice(cut)])
    expected = with_origin(rows)
    versions = expected[ROW_VERSION]
    found = look_up_origin(rows.drop_columns([ORIGIN]).append_column(ROW_VERSION, versions), messages)
    assert found is not None
    assert found.column_names == expected.column_names
    assert found.to_pylist() == expected.to_pylist()


def test_a_result_for_each_message_in_order_needs_no_search():
    messages = batch(range(5, 25))
    found = look_up_origin(only_numbers(list(range(5, 25))), messages)
    assert found is not None
    assert found["message_id"].to_pylist() == messages["message_id"].to_pylist()


@pytest.mark.parametrize("stranger", [0, 4, 10, -1, None])
def test_results_that_belong_to_no_message_of_the_batch_are_noticed(stranger):
    messages = batch([3, 5, 9])
    assert look_up_origin(only_numbers([3, stranger]), messages) is None
    assert look_up_origin(only_numbers([stranger]), messages) is None
    assert look_up_origin(only_numbers([3, 5, stranger]), messages) is None


def test_a_result_without_row_version_is_not_that_of_a_message_whose_row_version_is_minus_one():
    assert look_up_origin(only_numbers([3, None]), batch([3, -1, 4])) is None


def test_any_result_of_an_empty_batch_is_refused():
    assert look_up_origin(only_numbers([3]), batch([])) is None


def test_no_results_are_no_rows():
    for numbers in ([1, 2], []):
        found = look_up_origin(only_numbers([]), batch(numbers))
        assert found is not None
        assert found.num_rows == 0


def test_an_executor_refuses_a_result_of_no_message_and_names_its_id():
    rows = returned((message(1), send()), (message(None, id="lost"), send()))
    with pytest.raises(TransformError, match=r"orders: .* belongs to no message of the batch \(id lost\)"):
        outcome_messages(rows, TO_BILLING)


def test_an_executor_reports_which_messages_it_has_seen_results_of():
    rows = returned(*((message(number), None if number == 3 else send()) for number in (1, 2, 3, 7)))
    ready, found = outcome_messages(rows, TO_BILLING)
    assert (found.rows, found.empty) == ([(1, 3), (7, 7)], [(3, 3)])
    assert [len(one.ids) for one in ready] == [3]


# --- a program's own frame of (origin, outcome) ------------------------------------------------------------


def test_an_outcome_that_a_program_writes_is_taken_apart():
    rows = [(message(1), send(), None), (message(2), None, fail("no"))]
    assert unpacked(written(*rows)).drop_columns([ORIGIN]) == returned(*rows).drop_columns([ORIGIN])
    ready, found = written_messages(written(*rows), SENDING)
    assert [one.destination for one in ready] == ["billing"]
    assert [failed.message for failed in found.failures.values()] == ["no"]


@pytest.mark.parametrize("changed", [{"id": "row2"}, {"message_id": None}, {"row_version": 3}, {"saga_id": "one"}])
def test_an_origin_that_a_program_changed_is_refused(changed):
    rows = written((message(1), send()), (message(2), send()))
    origins = rows[ORIGIN].to_pylist()
    origins[0] |= changed
    rows = rows.set_column(0, ORIGIN, pa.array(origins, rows.schema.field(ORIGIN).type))
    with pytest.raises(TransformError, match=rf"belongs to no message of the batch \(id {origins[0]['id']}\)"):
        written_messages(rows, SENDING)


def test_a_row_whose_outcome_is_null_has_no_outcome():
    rows = written((message(1), send()), (message(2), send()))
    mask = pa.array([False, True])
    outcome = rows[OUTCOME].combine_chunks()
    nothing = pa.StructArray.from_arrays([outcome.field(0)], ["_0"], mask=mask)
    found = sort_outcomes(with_origin(unpacked(rows.set_column(1, OUTCOME, nothing))))
    assert sent_ids(found) == ["row1"]


def test_a_program_without_a_pipeline_has_declared_no_event_and_publishes_none():
    with pytest.raises(TransformError, match=r"publishes Shop\.A, which is not among .*\(nothing\)"):
        written_messages(written((message(), publish())), SENDING)


# --- sends and failures ------------------------------------------------------------------------------------


def test_sends_are_tables_of_the_same_columns_whatever_fields_their_outcomes_have():
    found = sort_outcomes(related((message(1), send(), reply(code=3, body=None), publish(time_to_live=5))))
    assert set(FIELDS) == set(OUTCOME_FIELDS)
    for part in found.sends:
        assert part.column_names == [*ORIGIN_FIELDS, *FIELDS]
        assert [part.schema.field(name).type for name in FIELDS] == list(FIELDS.values())
    assert [part["ordinal"].to_pylist() for part in found.sends] == [[0], [1], [2]]


def test_an_outcome_that_holds_for_no_row_is_nothing():
    found = sort_outcomes(related((message(1), None, send()), (message(2), None, None)))
    assert [part["id"].to_pylist() for part in found.sends] == [["row1"]]
    assert sort_outcomes(related((message(1), None))).sends == []


def test_a_message_that_fails_is_not_half_processed():
    outcomes = [send(), append_to("log", {"n": 1}), add_to("totals", {"k": "a"}, {"n": 5})]
    found = sort_outcomes(
        related(
            (message(1), *outcomes, fail("no such article", error_type="ArticleUnknown"), fail("and another thing")),
            (message(2), *outcomes),
        )
    )
    assert reasons(found) == [("ArticleUnknown", "no such article", 1)]
    assert sent_ids(found) == ["row2"]
    assert table_rows(found) == [("log", (), [{"n": 1}]), ("totals", ("k",), [{"k": "a", "n": 5}])]


def test_a_failure_in_one_row_of_a_message_fails_its_other_rows_too():
    rows = [(message(1), send()), (message(2), send()), (message(1), send(error="bad line"))]
    found = sort_outcomes(related(*rows))
    assert (reasons(found), sent_ids(found)) == ([(REFUSED, "bad line", 1)], ["row2"])


def test_where_every_message_fails_nothing_is_left():
    rows = [(message(n), send(), add_to("totals", {"k": "a"}, {"n": 1}), fail("no")) for n in (1, 2)]
    found = sort_outcomes(related(*rows))
    assert (found.sends, found.tables, len(found.failures)) == ([], [], 2)


def test_a_failure_without_a_reason_is_still_a_failure():
    found = sort_outcomes(related((message(1), fail(None)), (message(2), fail("reason"))))
    assert reasons(found) == [(REFUSED, NO_REASON, 1), (REFUSED, "reason", 2)]


def test_a_send_whose_error_is_null_is_sent():
    found = sort_outcomes(related((message(1), send(error=None)), (message(2), send(error="bad"))))
    assert (sent_ids(found), [*found.failures]) == (["row1"], [2])


def test_a_reply_to_a_message_without_address_is_a_failure_and_nothing_else_is_sent_for_it():
    rows = [(message(1, reply_to=None), reply(), send()), (message(2), reply())]
    found = sort_outcomes(related(*rows))
    assert reasons(found) == [(REFUSED, NO_REPLY_ADDRESS, 1)]
    assert sent_ids(found) == ["row2"]


def test_a_send_for_a_message_without_reply_address_is_no_failure():
    found = sort_outcomes(related((message(1, reply_to=None), send()), (message(2), reply())))
    assert (found.failures, sent_ids(found)) == ({}, ["row1", "row2"])


def test_a_reply_that_fails_for_a_reason_of_its_own_keeps_it():
    found = sort_outcomes(related((message(1, reply_to=None), reply(error="no such order"))))
    assert reasons(found) == [(REFUSED, "no such order", 1)]


def test_failures_are_reported_in_the_order_of_their_messages():
    found = sort_outcomes(related(*((message(n), send(error=f"bad {n}")) for n in (3, 1, 2))))
    assert [failed.message for failed in found.failures.values()] == ["bad 1", "bad 2", "bad 3"]


# --- rows for tables ---------------------------------------------------------------------------------------


def test_what_messages_add_to_one_key_is_summed_up():
    rows = [(message(n), add_to("totals", {"k": "even" if n % 2 == 0 else "odd"}, {"n": n})) for n in range(1, 6)]
    (part,) = sort_outcomes(related(*rows)).tables
    assert (part.table, part.key) == ("totals", ("k",))
    assert part.rows.to_pylist() == [{"k": "odd", "n": 9}, {"k": "even", "n": 6}]


def test_rows_to_append_come_in_the_order_of_their_messages():
    rows = [(message(n), append_to("log", {"n": n, "text": f"line {n}"})) for n in (3, 1, 2)]
    ((table, key, found),) = table_rows(sort_outcomes(related(*rows)))
    assert (table, key) == ("log", ())
    assert found == [{"n": n, "text": f"line {n}"} for n in (1, 2, 3)]


def test_a_null_in_a_key_fails_its_message_and_no_other():
    outcomes = [
        (message(1), send(), add_to("totals", {"day": "monday", "shop": 1}, {"n": 1})),
        (message(2), send(), add_to("totals", {"day": None, "shop": None}, {"n": 2})),
        (message(3), send(), add_to("totals", {"day": "monday", "shop": 1}, {"n": 4})),
    ]
    found = sort_outcomes(related(*outcomes))
    reason = "table totals: day is part of the key and is null; give every row a whole key"
    assert reasons(found) == [(REFUSED, reason, 2)]
    assert sent_ids(found) == ["row1", "row3"]
    assert table_rows(found) == [("totals", ("day", "shop"), [{"day": "monday", "shop": 1, "n": 5}])]


def test_a_null_among_the_numbers_is_no_failure():
    rows = [(message(n), add_to("totals", {"k": "a"}, {"n": number})) for n, number in enumerate([None, 2], 1)]
    found = sort_outcomes(related(*rows))
    assert (found.failures, table_rows(found)) == ({}, [("totals", ("k",), [{"k": "a", "n": 2}])])


def test_a_null_in_a_row_to_append_is_no_failure():
    rows = [(message(n), append_to("log", {"n": number})) for n, number in enumerate([None, 2], 1)]
    found = sort_outcomes(related(*rows))
    assert (found.failures, table_rows(found)) == ({}, [("log", (), [{"n": None}, {"n": 2}])])


def test_each_outcome_for_a_table_is_a_part_of_its_own():
    found = sort_outcomes(related((message(1), append_to("log", {"n": 1}), append_to("audit", {"n": 2}))))
    assert [part.table for part in found.tables] == ["log", "audit"]


# --- order -------------------------------------------------------------------------------------------------


def versions(*numbers):
    return pa.table({ROW_VERSION: pa.array(numbers, pa.int64()), "at": range(len(numbers))})


def test_results_come_in_the_order_of_their_messages_and_keep_their_order_within_one():
    rows = in_order(versions(3, 1, 2, 1, 3, 1))
    assert rows[ROW_VERSION].to_pylist() == [1, 1, 1, 2, 3, 3]
    assert rows["at"].to_pylist() == [1, 3, 5, 2, 0, 4]


@pytest.mark.parametrize("numbers", [(), (7,), (1, 1, 2, 5)])
def test_results_that_are_in_order_are_not_copied(numbers):
    rows = versions(*numbers)
    assert in_order(rows) is rows


def test_results_in_several_chunks_are_put_in_order():
    rows = pa.concat_tables([versions(5, 6), versions(1, 5)])
    assert in_order(rows).to_pydict() == {ROW_VERSION: [1, 5, 5, 6], "at": [0, 0, 1, 1]}


def test_many_results_of_few_messages_keep_their_order_within_each():
    rows = in_order(versions(*(number % 3 for number in range(1_000))))
    pairs = list(zip(rows[ROW_VERSION].to_pylist(), rows["at"].to_pylist(), strict=True))
    assert pairs == sorted(pairs)


@settings(deadline=None)
@given(st.data())
def test_a_message_either_fails_or_has_all_of_its_results(data):
    """Whatever its neighbours do, in whatever order Spark returns them."""
    numbers = data.draw(st.permutations(range(1, data.draw(st.integers(1, 8)) + 1)))
    columns = [
        data.draw(st.sampled_from([send(), reply(), fail("no"), add_to("totals", {"k": "a"}, {"n": 1})]))
        for _ in range(data.draw(st.integers(1, 4)))
    ]
    held = {number: [data.draw(st.booleans()) for _ in columns] for number in numbers}
    addressed = {number: data.draw(st.booleans()) for number in numbers}

    def row(number):
        outcomes = [one if holds else None for one, holds in zip(columns, held[number], strict=True)]
        return (message(number, reply_to="shop" if addressed[number] else None), *outcomes)

    def is_failed(number):
        mine = [one for one, holds in zip(columns, held[number], strict=True) if holds]
        return any("error" in one or ("reply" in one and not addressed[number]) for one in mine)

    found = sort_outcomes(related(*map(row, numbers)))
    good = [number for number in sorted(numbers) if not is_failed(number)]
    assert sorted(found.failures) == [n for n in sorted(numbers) if is_failed(n)]
    expected = [number for at, one in enumerate(columns) if "body" in one for number in good if held[number][at]]
    assert [version for part in found.sends for version in part[ROW_VERSION].to_pylist()] == expected
    added = sum(held[number][at] for at, one in enumerate(columns) if "table" in one for number in good)
    assert sum(row["n"] for part in found.tables for row in part.rows.to_pylist()) == added


# --- what may be sent --------------------------------------------------------------------------------------

check = partial(check_sends, "orders", ["billing"], {"Shop.A"})


def sends(*outcomes):
    return sort_outcomes(related((message(1), *outcomes))).sends


def test_declared_queues_events_and_replies_may_be_sent():
    check(sends(send("billing"), publish("Shop.A"), reply()))


@pytest.mark.parametrize(
    ("outcome", "problem"),
    [
        (send("elsewhere"), r"sends to elsewhere, which is not among its output_queues \(billing\)"),
        (publish("Shop.B"), r"publishes Shop\.B, which is not among what it publishes \(Shop\.A\)"),
    ],
)
def test_what_cannot_be_sent_is_refused_in_any_outcome(outcome, problem):
    with pytest.raises(TransformError, match=problem):
        check(sends(outcome))
    with pytest.raises(TransformError, match=problem):
        check(sends(send("billing"), outcome))
