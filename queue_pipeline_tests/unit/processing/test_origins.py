"""What relates results to messages: the same whether it came along through Spark or was looked up."""

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from queue_pipeline.processing.claimed_batch import SCHEMA
from queue_pipeline.processing.messages_frame import ORIGIN_FIELDS
from queue_pipeline.processing.origins import flat, related
from queue_pipeline.processing.outcomes import OUTCOME_FIELDS

TEXT: pa.DataType = pa.string()
KINDS: dict[str, pa.DataType] = {
    "reply": pa.bool_(),
    "body": pa.binary(),
    "headers": pa.map_(TEXT, TEXT),
    "delay": pa.int64(),
    "time_to_live": pa.int64(),
    "ordinal": pa.int32(),
    "code": pa.int32(),
}
OUTCOME = pa.struct([(name, KINDS.get(name, TEXT)) for name in OUTCOME_FIELDS])
ORIGIN = pa.struct([(name, pa.int64() if name == "row_version" else TEXT) for name in ORIGIN_FIELDS])


def messages(numbers):
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
            "saga_id": None,
            "saga_type": None,
        }
        for n in numbers
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


def results(numbers):
    outcomes = [
        {"destination": None if at % 4 == 0 else "billing", "reply": at % 4 == 0, "body": b"%d" % at, "ordinal": at}
        for at, _ in enumerate(numbers)
    ]
    return pa.array(outcomes, OUTCOME)


def narrow(numbers):
    made = results(numbers)
    fields = {name: made.field(at) for at, name in enumerate(OUTCOME_FIELDS)}
    return pa.table({"row_version": pa.array(numbers, pa.int64()), **fields})


def along(batch, numbers):
    """Rows of (origin, outcome) as a task of Spark's gets them."""
    by_number = {row["row_version"]: row for row in batch.to_pylist()}
    origins = [{name: by_number[number][name] for name in ORIGIN_FIELDS} for number in numbers]
    return pa.table({"origin": pa.array(origins, ORIGIN), "outcome": results(numbers)})


@settings(deadline=None)
@given(st.lists(st.integers(-3, 40), unique=True, min_size=1), st.data())
def test_what_is_looked_up_is_what_would_have_come_along(known, data):
    """In any order, with several results for a message and none for another."""
    numbers = data.draw(st.lists(st.sampled_from(known), max_size=30))
    batch = messages(known)
    found = related(narrow(numbers), batch)
    expected = flat(along(batch, numbers))
    assert found.select(expected.column_names).to_pylist() == expected.to_pylist()


def test_a_result_for_each_message_in_order_needs_no_search():
    batch = messages(range(5, 25))
    found = related(narrow(list(range(5, 25))), batch)
    assert found["message_id"].to_pylist() == batch["message_id"].to_pylist()


def test_results_of_no_message_of_the_batch_are_noticed():
    batch = messages([3, 5, 9])
    for strange in (0, 4, 10, None):
        assert related(narrow([3, strange]), batch) is None
        assert related(narrow([strange]), batch) is None
    assert related(narrow([3]), messages([])) is None


def test_no_results_are_no_rows():
    assert related(narrow([]), messages([1, 2])).num_rows == 0
    assert related(narrow([]), messages([])).num_rows == 0
