"""Outcomes as Spark returns them, made by hand: one row per message, one struct column per outcome."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.batch.messages_frame import BETWEEN, ORIGIN, ORIGIN_FIELDS, SEAL
from queue_pipeline.processing.declaration.outcomes import ADDED, KEY, OUTCOME, TABLE, VALUES, position_name
from queue_pipeline.processing.results.sorting import FIELDS, with_origin

ORIGIN_TYPE = pa.struct([(name, pa.int64() if name == "row_version" else pa.string()) for name in ORIGIN_FIELDS])


def message(number: int | None = 1, **fields: Any) -> dict[str, Any]:
    """The origin of results."""
    return {
        "row_version": number,
        "id": f"row{number}",
        "message_id": f"message{number}",
        "correlation_id": f"correlation{number}",
        "conversation_id": f"conversation{number}",
        "reply_to": "shop@[dbo]",
        **fields,
    }


def send(queue: str | None = "billing", **fields: Any) -> dict[str, Any]:
    """The fields of `send(...)`."""
    return {"destination": queue, "body": b"{}", **fields}


def reply(**fields: Any) -> dict[str, Any]:
    """The fields of `reply(...)`."""
    return {"reply": True, "body": b"{}", **fields}


def publish(event: str = "Shop.A", **fields: Any) -> dict[str, Any]:
    """The fields of `publish(...)`."""
    return {"event": event, "body": b"{}", **fields}


def fail(error: str | None, **fields: Any) -> dict[str, Any]:
    """The fields of `fail(...)`."""
    return {"error": error, **fields}


def add_to(table: str, key: Mapping[str, Any], add: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `add_to(...)`."""
    return {TABLE: table, KEY: dict(key), ADDED: dict(add)}


def append_to(table: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of `append_to(...)`."""
    return {TABLE: table, VALUES: dict(values)}


def returned(*rows: Sequence[Any]) -> Table:
    """Rows of a message and its outcomes, None where `when` does not hold, as `origin` and a column per outcome."""
    count = max((len(row) - 1 for row in rows), default=1)
    columns = {
        position_name(at): _outcomes([row[at + 1] if at + 1 < len(row) else None for row in rows])
        for at in range(count)
    }
    return pa.table({ORIGIN: pa.array([row[0] for row in rows], ORIGIN_TYPE), **columns})


def written(*rows: Sequence[Any]) -> Table:
    """The same as `origin`, with its seal, and `outcome`, as a program writes it."""
    table = returned(*rows)
    sealed = pa.array([{**row[0], SEAL: seal(row[0])} for row in rows], pa.struct([*ORIGIN_TYPE, (SEAL, pa.int64())]))
    names = [name for name in table.column_names if name != ORIGIN]
    outcome = pa.StructArray.from_arrays([table[name].combine_chunks() for name in names], names)
    return pa.table({ORIGIN: sealed, OUTCOME: outcome})


def seal(origin: Mapping[str, Any]) -> int:
    """The checksum that Spark makes of an origin's fields."""
    values = (origin.get(name) for name in ORIGIN_FIELDS)
    return zlib.crc32(BETWEEN.join(str(value) for value in values if value is not None).encode())


def related(*rows: Sequence[Any]) -> Table:
    """The same with the fields of the origin side by side, ready to be sorted."""
    return with_origin(returned(*rows))


def _outcomes(values: Sequence[Mapping[str, Any] | None]) -> Any:
    """One outcome: a struct of the fields that any row has, as the function that made it would."""
    names = {name: None for value in values for name in value or ()} or {"destination": None, "body": None}
    if TABLE in names:
        return pa.array(values)
    return pa.array(values, pa.struct([(name, FIELDS[name]) for name in names]))
