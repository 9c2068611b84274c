"""The contract of a transform: what it may return, and the errors of one that returns something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from queue_pipeline.processing.batch.messages_frame import ORIGIN, ORIGIN_FIELDS, SEAL, checked_origin
from queue_pipeline.processing.declaration.outcomes import (
    ADDED,
    OUTCOME,
    OUTCOME_FIELDS,
    TABLE,
    Append,
    Merge,
    Outcome,
    Results,
    TableRow,
    position_name,
)
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.errors import TransformError, TransformExitError
from queue_pipeline.processing.spark.internals.patches import stable_names
from queue_pipeline.transport.messages.event import full_name
from queue_pipeline.transport.messages.message import TransactionMode

SEND_COLUMNS = tuple(name for name in OUTCOME_FIELDS if name not in ("reply", "code", "event"))
REPLY_COLUMNS = (*SEND_COLUMNS, "code")
EVENT_COLUMNS = ("body", "headers", "time_to_live", "ordinal", "error", "error_type")
RELATIONS = (ORIGIN, "id")


@dataclass(frozen=True, slots=True)
class Returned:
    """What a transform returned, brought into one form: `origin` and a column per outcome, table rows included."""

    outcomes: DataFrame | None
    names: Sequence[str]
    """The columns of the outcomes; asking the frame would have Spark analyse it once more."""


def returned_by(pipeline: QueuePipeline, messages: DataFrame) -> Returned:
    """What a pipeline's transform makes of messages, checked: the same plan for every batch."""
    with stable_names():
        return check_returned(pipeline, messages, _call(pipeline, messages))


def _call(pipeline: QueuePipeline, messages: DataFrame) -> object:
    """Call the transform. SystemExit would end the thread silently: it becomes a failure of the transform."""
    try:
        return pipeline.transform(messages)
    except Exception:
        raise
    except BaseException as error:
        raise TransformExitError(
            f"pipeline {pipeline.name}: the transform raised {type(error).__name__}, which is to end the process; "
            "raise an Exception, or return fail(...) for the message"
        ) from error


def check_returned(pipeline: QueuePipeline, messages: DataFrame, returned: object) -> Returned:
    """Accept a DataFrame or `Results`; raise a TransformError that names the columns of anything else."""
    if isinstance(returned, DataFrame):
        returned = Results(sends=returned)
    if not isinstance(returned, Results):
        raise _wrong(pipeline, f"it returned {type(returned).__name__}; return a DataFrame or Results(...)")
    together: DataFrame | None = None
    position = 0
    for frame, where, fixed in _frames(pipeline, returned):
        outcomes, count = _outcomes(pipeline, messages, frame, where, fixed, position)
        together = outcomes if together is None else together.unionByName(outcomes, allowMissingColumns=True)
        position += count
    for at, table in enumerate(returned.tables):
        rows = _table_outcome(pipeline, table, f"tables[{at}]", position)
        together = rows if together is None else together.unionByName(rows, allowMissingColumns=True)
        position += 1
    return Returned(together, [position_name(at) for at in range(position)])


def _frames(pipeline: QueuePipeline, results: Results) -> list[tuple[DataFrame, str, Outcome]]:
    frames: list[tuple[DataFrame, str, Outcome]] = []
    only = pipeline.output_queues[0].queue if len(pipeline.output_queues) == 1 else None
    if isinstance(results.sends, Mapping):
        frames += [(frame, f"sends[{queue!r}]", Outcome(queue)) for queue, frame in results.sends.items()]
    elif isinstance(results.sends, DataFrame):
        frames.append((results.sends, "sends", Outcome(only)))
    elif results.sends is not None:
        frames += [(frame, f"sends[{at}]", Outcome(only)) for at, frame in enumerate(results.sends)]
    if results.replies is not None:
        frames.append((results.replies, "replies", Outcome(reply=True)))
    if results.failures is not None:
        frames.append((results.failures, "failures", Outcome()))
    for event, frame in results.publications.items():
        frames.append((frame, f"publications[{event!r}]", Outcome(event=full_name(event))))
    return frames


def _outcomes(
    pipeline: QueuePipeline, messages: DataFrame, frame: DataFrame, where: str, fixed: Outcome, first: int
) -> tuple[DataFrame, int]:
    """One returned frame as `origin` and a column per outcome, numbered from `first`, and how many there are."""
    if not isinstance(frame, DataFrame):
        raise _wrong(pipeline, f"{where} is {type(frame).__name__}, not a DataFrame")
    schema = frame.schema
    types = {field.name: field.dataType for field in schema.fields}
    plain = REPLY_COLUMNS if fixed.reply else SEND_COLUMNS if fixed.event is None else EVENT_COLUMNS
    allowed = (*RELATIONS, *((OUTCOME,) if OUTCOME in types and fixed.event is None else plain))
    if unknown := [name for name in types if name not in allowed]:
        raise _wrong(
            pipeline,
            f"{where} has columns that mean nothing there: {', '.join(unknown)}; allowed: {', '.join(allowed)}",
        )
    if not set(RELATIONS) & set(types):
        raise _wrong(pipeline, f"{where} lacks the column {ORIGIN} (or id), which says what message a row results from")
    if OUTCOME in types:
        count = _count_outcomes(pipeline, types[OUTCOME], where)
        columns = [F.col(f"{OUTCOME}.{position_name(at)}").alias(position_name(first + at)) for at in range(count)]
    else:
        columns = [_columns(pipeline, types, where, fixed).alias(position_name(first))]
    if ORIGIN in types:
        _check_origin(pipeline, types[ORIGIN], where)
        return frame.select(checked_origin(), *columns), len(columns)
    # Without the origin, what relates a result to its message is looked up by its id; one that is no message's is kept,
    # to be refused with the others.
    found = frame.join(F.broadcast(messages.select("id", ORIGIN)), "id", "left")
    fields = [F.col("id" if name == "id" else f"{ORIGIN}.{name}").alias(name) for name in ORIGIN_FIELDS]
    return found.select(F.struct(*fields).alias(ORIGIN), *columns), len(columns)


def _table_outcome(pipeline: QueuePipeline, given: Append | Merge, where: str, position: int) -> DataFrame:
    """The rows for a table as `origin` and one outcome: they come with the sends, and none of a message that fails."""
    _check_can_write(pipeline)
    if not isinstance(given, Append | Merge) or not isinstance(given.rows, DataFrame):
        raise _wrong(pipeline, f"{where} is no Append(table, frame) or Merge(table, frame, key)")
    types = {field.name: field.dataType for field in given.rows.schema.fields}
    where = f"{where}, for table {given.table},"
    if ORIGIN not in types:
        raise _wrong(
            pipeline,
            f"{where} lacks the column {ORIGIN}, which says what message a row results from; add it (it is not written "
            f"to the table), F.min('{ORIGIN}') for a group",
        )
    _check_origin(pipeline, types.pop(ORIGIN), where)
    key, added = (given.key, given.add) if isinstance(given, Merge) else ((), ())
    if not types or (unknown := [name for name in (*key, *added) if name not in types]):
        missing = ", ".join(unknown) if types else "any column of the table"
        raise _wrong(pipeline, f"{where} lacks {missing}; it has {', '.join(types) or 'none'}")
    columns = {name: F.col(f"`{name.replace('`', '``')}`") for name in types}
    for name in added:
        if not isinstance(types[name], T.NumericType | T.NullType):
            raise _wrong(pipeline, f"{where} adds up {name}, which is {types[name].simpleString()}; give a number")
    row = TableRow(
        given.table,
        {name: column for name, column in columns.items() if name not in (*key, *added)},
        {name: columns[name] for name in key},
        {name: columns[name] for name in added},
    )
    return given.rows.select(checked_origin(), row.column().alias(position_name(position)))


def _count_outcomes(pipeline: QueuePipeline, kind: T.DataType, where: str) -> int:
    fields = kind.fields if isinstance(kind, T.StructType) else []
    names = [field.name for field in fields]
    if not names or names != [position_name(at) for at in range(len(names))]:
        raise _wrong(pipeline, f"{where}: {OUTCOME} is {kind.simpleString()}; make it with each(send(...), ...)")
    for field in fields:
        if isinstance(field.dataType, T.StructType) and TABLE in field.dataType.names:
            _check_can_write(pipeline)
            _check_numbers(pipeline, field.dataType, where)
    return len(names)


def _check_numbers(pipeline: QueuePipeline, row: T.StructType, where: str) -> None:
    if ADDED in row.names and isinstance(added := row[ADDED].dataType, T.StructType):
        for field in added.fields:
            if not isinstance(field.dataType, T.NumericType):
                kind = field.dataType.simpleString()
                raise _wrong(pipeline, f"{where}: add_to adds up {field.name}, which is {kind}; give a number")


def _check_can_write(pipeline: QueuePipeline) -> None:
    """Rows of own tables are written by the transaction that completes a batch, if there is one."""
    if pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        raise _wrong(
            pipeline,
            "it returned rows for a table, which are written when the batch is completed; with transaction_mode "
            "'unreliable' it ends before; choose another mode",
        )


def _check_origin(pipeline: QueuePipeline, kind: T.DataType, where: str) -> None:
    if not isinstance(kind, T.StructType) or tuple(kind.names) != (*ORIGIN_FIELDS, SEAL):
        raise _wrong(
            pipeline,
            f"{where}: {ORIGIN} is {kind.simpleString()}; keep it as it is, and take F.min('{ORIGIN}') for a group",
        )


def _columns(pipeline: QueuePipeline, types: Mapping[str, T.DataType], where: str, fixed: Outcome) -> Column:
    given = {name: F.col(name) for name in types if name in REPLY_COLUMNS}
    if where == "failures" and "error" not in given:
        raise _wrong(pipeline, "failures lacks the column error, which says what is wrong with a message")
    if not {"body", "code", "error"} & set(given):
        raise _wrong(pipeline, f"{where} lacks the column body")
    if "code" in given and not isinstance(types["code"], T.IntegralType | T.NullType):
        raise _wrong(pipeline, f"{where}: code is {types['code'].simpleString()}; give a whole number")
    to_queue = not fixed.reply and fixed.event is None
    if to_queue and fixed.destination is None and "destination" not in given and "error" not in given:
        raise _wrong(
            pipeline,
            f"{where} lacks the column destination, and the pipeline has {len(pipeline.output_queues)} output queues; "
            "add it, or return Results(sends={queue: frame})",
        )
    for name in ("delay", "time_to_live"):
        if name in given and not isinstance(types[name], T.NumericType | T.NullType):
            raise _wrong(pipeline, f"{where}: {name} is {types[name].simpleString()}; give seconds as a number")
    body = given.get("body")
    if body is not None:
        body = _body(pipeline, types["body"], body, where)
    return Outcome(
        destination=given.get("destination", fixed.destination),
        reply=fixed.reply,
        body=body,
        message_type=given.get("message_type"),
        headers=given.get("headers"),
        delay=given.get("delay"),
        time_to_live=given.get("time_to_live"),
        error=given.get("error"),
        error_type=given.get("error_type"),
        code=given.get("code"),
        event=fixed.event,
        ordinal=given.get("ordinal"),
    ).column()


def _body(pipeline: QueuePipeline, kind: T.DataType, body: Column, where: str) -> Column:
    if isinstance(kind, T.StructType | T.MapType | T.ArrayType | T.VariantType):
        return F.to_json(body)
    if isinstance(kind, T.StringType | T.BinaryType | T.NullType):
        return body
    raise _wrong(
        pipeline,
        f"{where}: body is {kind.simpleString()}; give text, bytes, or a struct, map or array, which becomes JSON",
    )


def _wrong(pipeline: QueuePipeline, problem: str) -> TransformError:
    return TransformError(f"pipeline {pipeline.name}: the transform's result cannot be used: {problem}")
