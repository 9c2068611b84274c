"""The contract of a transform: what it may return, and the errors of one that returns something else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from queue_pipeline.processing.errors import TransformError
from queue_pipeline.processing.messages_frame import ORIGIN, ORIGIN_FIELDS
from queue_pipeline.processing.outcomes import (
    KEY,
    OUTCOME,
    OUTCOME_FIELDS,
    TABLE,
    VALUES,
    Append,
    Merge,
    Outcome,
    Results,
    position_name,
)
from queue_pipeline.processing.pipeline import QueuePipeline
from queue_pipeline.processing.spark_internals import stable_names
from queue_pipeline.transport.event import full_name
from queue_pipeline.transport.messages import TransactionMode

SEND_COLUMNS = tuple(name for name in OUTCOME_FIELDS if name not in ("reply", "code", "event"))
REPLY_COLUMNS = (*SEND_COLUMNS, "code")
EVENT_COLUMNS = ("body", "headers", "time_to_live", "ordinal", "error", "error_type")
RELATIONS = (ORIGIN, "id")


@dataclass(frozen=True, slots=True)
class Returned:
    """What a transform returned, brought into one form: `origin` and a column per outcome; frames for own tables."""

    outcomes: DataFrame | None
    tables: Sequence[Append | Merge]
    count: int = 0
    """How many outcomes there are; asking the frame would have Spark analyse it once more."""

    @property
    def names(self) -> list[str]:
        """The columns of the outcomes."""
        return [position_name(at) for at in range(self.count)]


def returned_by(pipeline: QueuePipeline, messages: DataFrame) -> Returned:
    """What a pipeline's transform makes of messages, checked: the same plan for every batch."""
    with stable_names():
        return check_returned(pipeline, messages, pipeline.transform(messages))


def check_returned(pipeline: QueuePipeline, messages: DataFrame, returned: object) -> Returned:
    """Accept a DataFrame or `Results`; raise a TransformError that names the columns of anything else."""
    if isinstance(returned, DataFrame):
        returned = Results(sends=returned)
    if not isinstance(returned, Results):
        raise _wrong(pipeline, f"it returned {type(returned).__name__}; return a DataFrame or Results(...)")
    if returned.tables:
        _check_can_write(pipeline)
    together: DataFrame | None = None
    position = 0
    for frame, where, fixed in _frames(pipeline, returned):
        outcomes, count = _outcomes(pipeline, messages, frame, where, fixed, position)
        together = outcomes if together is None else together.unionByName(outcomes, allowMissingColumns=True)
        position += count
    return Returned(together, tuple(returned.tables), position)


def _frames(pipeline: QueuePipeline, results: Results) -> list[tuple[DataFrame, str, Outcome]]:
    """Each frame with where it stands in the results and what its rows have in common."""
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
        return frame.select(_with_origin(pipeline, schema[ORIGIN], where), *columns), len(columns)
    # Without the origin, what relates a result to its message is looked up by its id; one that is no message's is kept,
    # to be refused with the others.
    found = frame.join(F.broadcast(messages.select("id", ORIGIN)), "id", "left")
    return found.select(_origin(id=F.col("id")), *columns), len(columns)


def _count_outcomes(pipeline: QueuePipeline, kind: T.DataType, where: str) -> int:
    """How many outcomes `each` has put into the column."""
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
    """What add_to adds up are numbers."""
    added = row[VALUES].dataType
    if KEY in row.names and isinstance(added, T.StructType):
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


def _with_origin(pipeline: QueuePipeline, origin: T.StructField, where: str) -> Column:
    kind = origin.dataType
    if not isinstance(kind, T.StructType) or tuple(kind.names) != ORIGIN_FIELDS:
        raise _wrong(
            pipeline,
            f"{where}: {ORIGIN} is {kind.simpleString()}; keep it as it is, and take F.min('{ORIGIN}') for a group",
        )
    return _origin() if origin.nullable else F.col(ORIGIN)


def _origin(**known: Column) -> Column:
    """An origin that may be missing, put together again: Arrow takes no null where all fields are NOT NULL."""
    fields = [known.get(name, F.col(f"{ORIGIN}.{name}")).alias(name) for name in ORIGIN_FIELDS]
    return F.struct(*fields).alias(ORIGIN)


def _columns(pipeline: QueuePipeline, types: Mapping[str, T.DataType], where: str, fixed: Outcome) -> Column:
    """The columns of a plain frame as an outcome."""
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
