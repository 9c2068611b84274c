"""Types of Arrow that settings of Spark change are brought back to the usual ones."""

from datetime import UTC, datetime

import pyarrow as pa

from queue_pipeline.processing.arrow import usual_types

AT = datetime(2026, 3, 1, 12, tzinfo=UTC)


def large(zone="GMT+3"):
    """A row of every type that a setting changes, nested and null."""
    text, data, at = pa.large_string(), pa.large_binary(), pa.timestamp("us", zone)
    kind = pa.struct(
        [
            pa.field("text", text, nullable=False),
            pa.field("data", data),
            pa.field("headers", pa.map_(text, text)),
            pa.field("times", pa.large_list(at)),
            pa.field("wall", pa.timestamp("us")),
        ]
    )
    value = {"text": "a", "data": b"b", "headers": [("c", "d"), ("e", None)], "times": [AT, None], "wall": None}
    return pa.table({"outcome": pa.array([value, None], kind), "id": pa.array(["x", None], text)})


def test_large_types_and_zones_become_the_usual_ones_at_every_depth():
    found = usual_types(large())
    types = str(found.schema)
    assert "large" not in types
    assert "GMT" not in types
    assert found.to_pylist() == usual_types(large("UTC")).to_pylist()
    assert found["outcome"][0].as_py()["times"] == [AT, None]
    assert found["outcome"].to_pylist()[1] is None


def test_usual_types_are_left_unchanged():
    rows = usual_types(large())
    assert usual_types(rows) is rows


def test_structs_that_are_null_where_their_fields_are_not_stay_so():
    """As Spark returns a result whose condition does not hold, beside one with a time."""
    fields = [
        pa.field("text", pa.string(), nullable=False),
        pa.field("at", pa.timestamp("us", "GMT+3"), nullable=False),
    ]
    without_time = pa.StructArray.from_arrays([pa.array([None], pa.string())], fields=fields[:1], mask=pa.array([True]))
    children = [pa.array([None], field.type) for field in fields]
    with_time = pa.StructArray.from_arrays(children, fields=fields, mask=pa.array([True]))
    rows = usual_types(pa.table({"_0": without_time, "_1": with_time}))
    assert rows.to_pylist() == [{"_0": None, "_1": None}]
    assert rows.schema.field("_0").type == without_time.type
    assert rows.schema.field("_1").type.field("at").type == pa.timestamp("us", "UTC")


def test_lists_and_maps_of_usual_types_are_left_unchanged():
    kinds = [pa.map_(pa.string(), pa.string()), pa.list_(pa.int64()), pa.list_(pa.field("element", pa.int64(), False))]
    rows = pa.table({str(at): pa.array([None], kind) for at, kind in enumerate(kinds)})
    assert usual_types(rows) is rows
