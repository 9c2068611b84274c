"""Sorts the results of a batch: relates them to their messages, checks them, separates sends, failures and rows.

Spark returns one row per message or group, with one struct column per outcome. All work is on whole columns.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa

from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.messages_frame import BETWEEN, ORIGIN, ORIGIN_FIELDS, SEAL
from queue_pipeline.processing.declaration.outcomes import ADDED, KEY, OUTCOME, TABLE, VALUES
from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.results.bad_values import bad_values, in_milliseconds
from queue_pipeline.processing.results.table_rows import OutcomeRows
from queue_pipeline.transport.failed.error_message import Failure

REFUSED = "MessageRefused"
NO_REPLY_ADDRESS = "the message has no reply-to address, and the transform replies to it"
NO_REASON = "the transform gave no reason"
NO_OUTCOME = Failure("NoOutcome", "the transform returned no send, reply, event, failure or table row for this message")
"""Why a message without an outcome fails, for a pipeline that requires one."""
ROW_VERSION = "row_version"

_TEXT = pa.string()
FIELDS: Mapping[str, Any] = {
    "destination": _TEXT,
    "reply": pa.bool_(),
    "body": pa.binary(),
    "message_type": _TEXT,
    "headers": pa.map_(_TEXT, _TEXT),
    "delay": pa.int64(),
    "time_to_live": pa.int64(),
    "ordinal": pa.int64(),
    "error": _TEXT,
    "error_type": _TEXT,
    "code": pa.int64(),
    "event": _TEXT,
}
"""The fields of a sent message; those that an outcome lacks are null."""


@dataclass(frozen=True, slots=True)
class Sorted:
    """The outcomes of a batch. `sends` are tables of the same columns: the origin's, then FIELDS."""

    sends: Sequence[Table]
    failures: Mapping[int, Failure]
    """Why messages failed, by row version; without a stack trace, as the transform refused them."""
    tables: Sequence[OutcomeRows] = ()
    row_versions: Array = ()
    """The messages that have an outcome, failures among them; each once, in order."""


def with_origin(rows: Table) -> Table:
    """Rows of (origin, outcomes) with the fields of their origin side by side."""
    origin = rows[ORIGIN].combine_chunks()
    fields = {name: pc.struct_field(origin, name) for name in ORIGIN_FIELDS}
    return pa.table({**fields, **{name: rows[name] for name in rows.column_names if name != ORIGIN}})


def broken_seal(rows: Table) -> str | None:
    """The id in an origin whose seal does not fit its other fields, in rows of (origin, …); None if all do."""
    origin = rows[ORIGIN].combine_chunks()
    fields = [pc.cast(pc.struct_field(origin, name), _TEXT) for name in ORIGIN_FIELDS]
    texts = pc.cast(pc.binary_join_element_wise(*fields, BETWEEN, null_handling="skip"), pa.binary())
    found = pa.array([zlib.crc32(text) for text in texts.to_pylist()], pa.int64())
    is_broken = pc.fill_null(pc.not_equal(found, pc.struct_field(origin, SEAL)), True)
    return str(pc.struct_field(origin, "id").filter(is_broken)[0].as_py()) if pc.any(is_broken).as_py() else None


def look_up_origin(rows: Table, messages: Table) -> Table | None:
    """Add the fields of the origin to rows of (row_version, outcomes); None if a result belongs to no message."""
    numbers = pc.fill_null(rows[ROW_VERSION], -1).combine_chunks().to_numpy()
    known = messages[ROW_VERSION].to_numpy()
    if not np.array_equal(numbers, known):
        order = np.argsort(known, kind="stable")
        places = np.searchsorted(known, numbers, sorter=order)
        found = order[np.minimum(places, len(known) - 1)] if len(known) else places
        is_known = known[found] == numbers if len(known) else np.zeros(len(numbers), bool)
        if not is_known.all() or rows[ROW_VERSION].null_count:
            return None
        messages = messages.select(ORIGIN_FIELDS).take(pa.array(found, pa.int64()))
    origin = {name: messages[name].combine_chunks() for name in ORIGIN_FIELDS}
    return pa.table({**origin, **{name: rows[name] for name in rows.column_names if name != ROW_VERSION}})


def unpacked(rows: Table) -> Table:
    """Rows of (origin, outcome) with each outcome as a column of its own."""
    outcome = rows[OUTCOME].combine_chunks()
    columns = {field.name: pc.struct_field(outcome, [at]) for at, field in enumerate(outcome.type)}
    return pa.table({ORIGIN: rows[ORIGIN], **columns})


def strangers(pipeline: str, named: str) -> TransformError:
    """The error of results that belong to no message of the batch."""
    return TransformError(
        f"pipeline {pipeline}: a result of the transform belongs to no message of the batch ({named}); keep origin or "
        "id as they are, and take F.min('origin') for a group"
    )


def refused_among(pipeline: str, messages: Table, row_versions: Collection[int]) -> Array:
    """Which messages of a batch failed; raises a TransformError for a failure that belongs to none of them."""
    refused = pc.is_in(messages[ROW_VERSION], pa.array(list(row_versions), pa.int64()))
    if (pc.sum(refused).as_py() or 0) != len(row_versions):
        unknown = set(row_versions) - set(messages[ROW_VERSION].to_pylist())
        raise strangers(pipeline, f"a failure of row version {min(unknown)}")
    return refused


def sort_outcomes(rows: Table, typed: Collection[str] = ()) -> Sorted:
    """Separate sends, failures and table rows, in rows of an origin's fields and a column per outcome.

    Nothing is sent or written for a message that fails. `typed` are the queues with a declared message type.
    """
    rows = in_order(rows)
    origin = rows.select(ORIGIN_FIELDS)
    sends: list[Table] = []
    found: list[tuple[Array, OutcomeRows]] = []
    failures: dict[int, Failure] = {}
    has_outcome = np.zeros(rows.num_rows, bool)
    for position, name in enumerate(name for name in rows.column_names if name not in ORIGIN_FIELDS):
        outcome, own = rows[name].combine_chunks(), origin
        held = outcome.is_valid()
        has_outcome |= held.to_numpy(zero_copy_only=False)
        if outcome.null_count:
            outcome, own = outcome.filter(held), origin.filter(held)
        if not len(outcome):
            continue
        fields = {field.name: pc.struct_field(outcome, [at]) for at, field in enumerate(outcome.type)}
        if TABLE in fields:
            found.append((own[ROW_VERSION], _table_rows(fields, own, failures)))
        else:
            sends.append(_messages(fields, own, position, failures, typed))
    failed = pa.array(list(failures), pa.int64())
    kept = [_without(part, part[ROW_VERSION], failed) for part in sends]
    tables = [replace(part, rows=_without(part.rows, of, failed)).summed() for of, part in found]
    return Sorted(
        [part for part in kept if part.num_rows],
        failures,
        [part for part in tables if part.rows.num_rows],
        np.unique(rows[ROW_VERSION].to_numpy()[has_outcome]),
    )


def in_order(rows: Table) -> Table:
    """Results in the order of their messages, however Spark's tasks came to an end."""
    versions = rows[ROW_VERSION].to_numpy()
    if bool((versions[1:] >= versions[:-1]).all()):
        return rows
    return rows.take(np.argsort(versions, kind="stable"))


def _messages(
    fields: Mapping[str, Any], origin: Table, position: int, failures: dict[int, Failure], typed: Collection[str]
) -> Table:
    count = origin.num_rows
    columns = {name: fields.get(name) for name in FIELDS}
    filled = {name: pa.nulls(count, FIELDS[name]) if value is None else value for name, value in columns.items()}
    if fields.get("ordinal") is None:
        filled["ordinal"] = pa.repeat(pa.scalar(position, pa.int64()), count)
    filled["reply"] = pc.fill_null(filled["reply"], False)
    error = filled["error"]
    if pc.any(filled["reply"]).as_py():
        to = pc.if_else(filled["reply"], origin["reply_to"].combine_chunks(), filled["destination"])
        unanswerable = pc.and_(filled["reply"], pc.is_null(to))
        error = pc.if_else(unanswerable, pc.coalesce(error, pa.scalar(NO_REPLY_ADDRESS)), error)
        filled["destination"] = to
    if not {"body", "code"} & fields.keys():
        # An outcome that is nothing but a failure.
        error = pc.fill_null(error, NO_REASON)
    else:
        problems = bad_values(fields, typed, count)
        for name in {"delay", "time_to_live"} & fields.keys():
            filled[name], bad = in_milliseconds(fields, name)
            problems = {**bad, **problems}
        if problems:
            error = pc.coalesce(error, pa.array([problems.get(at) for at in range(count)], _TEXT))
    part = pa.table({**{name: origin[name] for name in origin.column_names}, **filled})
    if error.null_count == count:
        return part
    failing = pc.is_valid(error)
    reasons = part.append_column("reason", error).filter(failing).select(["error_type", "reason", ROW_VERSION])
    for row in reasons.to_pylist():
        # The first failure counts.
        failures.setdefault(row[ROW_VERSION], Failure(row["error_type"] or REFUSED, row["reason"]))
    return part.filter(pc.invert(failing))


def _table_rows(fields: Mapping[str, Any], origin: Table, failures: dict[int, Failure]) -> OutcomeRows:
    """Rows for a table; a message with a null in its key fails."""
    table = fields[TABLE][0].as_py()
    key, values, added = (_columns(fields.get(name)) for name in (KEY, VALUES, ADDED))
    for name, column in key.items():
        if column.null_count:
            reason = f"table {table}: {name} is part of the key and is null; give every row a whole key"
            for row_version in origin[ROW_VERSION].filter(column.is_null()).to_pylist():
                failures.setdefault(row_version, Failure(REFUSED, reason))
    return OutcomeRows(table, tuple(key), pa.table({**key, **values, **added}), tuple(added))


def _columns(struct: Any) -> dict[str, Any]:
    if struct is None:
        return {}
    return {field.name: pc.struct_field(struct, [at]) for at, field in enumerate(struct.type)}


def _without(rows: Table, row_versions: Array, failed: Any) -> Table:
    return rows.filter(pc.invert(pc.is_in(row_versions, failed))) if len(failed) else rows


def check_sends(
    pipeline: str, outputs: Collection[str] | None, events: Collection[str], sends: Sequence[Table]
) -> None:
    """Refuse results for queues and events that the pipeline does not declare; raises a TransformError."""
    for part in sends:
        if outputs is not None:
            _check_outputs(pipeline, outputs, part)
        _check_events(pipeline, events, part)


def _check_outputs(pipeline: str, known: Collection[str], sends: Table) -> None:
    named = sends["destination"]
    if sends["event"].null_count < len(named) or pc.any(sends["reply"]).as_py():
        named = named.filter(pc.invert(pc.or_(sends["reply"], pc.is_valid(sends["event"]))))
    unknown = sorted(str(name) for name in set(pc.unique(named).to_pylist()) - set(known))
    if unknown:
        raise TransformError(
            f"pipeline {pipeline}: the transform sends to {', '.join(unknown)}, which is not among its "
            f"output_queues ({', '.join(sorted(known)) or 'none'}); add it there, or correct the name"
        )


def _check_events(pipeline: str, known: Collection[str], sends: Table) -> None:
    """Every event must be declared, with its parent types: their subscribers would miss it otherwise."""
    unknown = sorted(set(pc.unique(sends["event"].drop_null()).to_pylist()) - set(known))
    if unknown:
        raise TransformError(
            f"pipeline {pipeline}: the transform publishes {', '.join(unknown)}, which is not among what it publishes "
            f"({', '.join(sorted(known)) or 'nothing'}); add it to publishes, or correct the name"
        )
