"""Outcomes become messages: destination, headers and lifetime of each result."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pyarrow as pa

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.declaration.pipeline import Output, QueuePipeline
from queue_pipeline.processing.results.header_texts import header_texts
from queue_pipeline.processing.results.result_ids import number_results, result_ids
from queue_pipeline.processing.results.sorting import in_order
from queue_pipeline.transport.addresses.queues import layout_of
from queue_pipeline.transport.database.dialects.dialect import NEVER_EXPIRES
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.publish import INTENT

_UNDECLARED = Output(queue="any")


@dataclass(frozen=True)
class Publication:
    """How an event is published: its types as headers list them, and the addresses of all who subscribed."""

    message_types: str
    subscribers: Sequence[str]
    content_type: str = "application/json"


@dataclass(frozen=True)
class Sending:
    """What all results of a batch have in common."""

    pipeline: str
    endpoint: str
    reply_to: str
    canonical: Mapping[str, str]
    outputs: Mapping[str, Output] | None = None
    """The queues that a pipeline declares; None for results of a program, which may go to any queue."""
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    events: Mapping[str, Publication] = field(default_factory=dict)

    @property
    def typed(self) -> set[str]:
        """The queues with a declared message type."""
        return {queue for queue, output in (self.outputs or {}).items() if output.message_type}

    def output(self, queue: str) -> Output:
        """What the messages for a queue have in common, also for one that is not declared, such as that of a reply."""
        return (self.outputs or {}).get(queue, _UNDECLARED)

    def reply_to_for(self, queue: str) -> str | None:
        """Where receivers answer to: None for those of the other system, who could not read the address."""
        return self.reply_to if layout_of(queue) == layout_of(self.reply_to) else None


def sending_of(pipeline: QueuePipeline, canonical: Callable[[str], str], events: Mapping[str, Publication]) -> Sending:
    """What all results of a batch that begins now have in common; `canonical` is the address that peers know."""
    outputs = pipeline.output_queues
    return Sending(
        pipeline=pipeline.name,
        endpoint=pipeline.endpoint_name,
        reply_to=canonical(pipeline.reply_to or pipeline.input_queue),
        canonical={output.queue: canonical(output.queue) for output in outputs},
        outputs={output.queue: output for output in outputs},
        events=events,
    )


def envelopes(sends: Sequence[Table], sending: Sending) -> list[MessageColumns]:
    """The rows to send as messages, one set for each queue, delayed ones apart, and one for each subscriber."""
    queues: dict[str, list[Table]] = {}
    events: dict[str, list[Table]] = {}
    for part in sends:
        published = pc.is_valid(part["event"])
        if not pc.any(published).as_py():
            _split(part, "destination", queues)
            continue
        _split(part.filter(pc.invert(published)), "destination", queues)
        _split(part.filter(published), "event", events)
    named = [_envelopes(in_order(pa.concat_tables(parts)), queue, sending) for queue, parts in queues.items()]
    publications = [_publications(in_order(pa.concat_tables(parts)), event, sending) for event, parts in events.items()]
    return [messages for group in (*named, *publications) for messages in group]


def _split(rows: Table, column: str, into: dict[str, list[Table]]) -> None:
    values = pc.unique(rows[column]).to_pylist()
    for value in values:
        chosen = rows if len(values) == 1 else rows.filter(pc.equal(rows[column], value))
        into.setdefault(value, []).append(chosen)


def _publications(rows: Table, event: str, sending: Sending) -> list[MessageColumns]:
    """Events as messages: the same ids, headers and bodies for each subscriber, except for the reply-to address."""
    publication = sending.events[event]
    output = Output(queue=event, message_type=publication.message_types, content_type=publication.content_type)
    declared = replace(sending, outputs={event: output})
    rows = rows.combine_chunks()
    ids, made = _result_ids(rows, event, sending), dict[str | None, MessageColumns]()
    for reply_to in map(sending.reply_to_for, publication.subscribers):
        if reply_to not in made:
            made[reply_to] = _messages(rows, ids, event, False, declared, reply_to)
    return [
        replace(made[sending.reply_to_for(subscriber)], destination=subscriber)
        for subscriber in publication.subscribers
    ]


def _envelopes(rows: Table, queue: str, sending: Sending) -> list[MessageColumns]:
    later = pc.is_valid(rows["delay"])
    parts = [(rows, False)]
    if pc.any(later).as_py():
        parts = [(rows.filter(pc.invert(later)), False), (rows.filter(later), True)]
    # Results are numbered before they are parted: a message may have one now and one later for the same queue.
    ids = _result_ids(pa.concat_tables([part for part, _ in parts]).combine_chunks(), queue, sending)
    ready = []
    for part, delayed in parts:
        if part.num_rows:
            own, ids = ids[: part.num_rows], ids[part.num_rows :]
            reply_to = sending.reply_to_for(queue)
            ready.append(_messages(part.combine_chunks(), own, queue, delayed, sending, reply_to))
    return ready


def _result_ids(rows: Table, queue: str, sending: Sending) -> list[str]:
    ids, ordinals, bodies = (rows[name].combine_chunks() for name in ("id", "ordinal", "body"))
    versions = rows["row_version"].to_numpy()
    # Where each message has one result, ids need no ordinal.
    alone = bool((versions[1:] > versions[:-1]).all())
    numbers = pc.fill_null(ordinals, 0).to_pylist() if alone else number_results(ids, ordinals, bodies)
    return result_ids(ids.to_pylist(), sending.pipeline, queue, numbers)


def _messages(
    rows: Table, message_ids: list[str], queue: str, delayed: bool, sending: Sending, reply_to: str | None
) -> MessageColumns:
    columns = {name: rows[name].combine_chunks() for name in rows.column_names}
    milliseconds = _milliseconds(columns, queue, delayed, sending)
    control = columns["code"].is_valid() if columns["code"].null_count < rows.num_rows else None
    headers = header_texts(
        {
            wire.MESSAGE_ID: pa.array(message_ids, pa.string()),
            wire.CORRELATION_ID: pc.coalesce(columns["correlation_id"], columns["message_id"]),
            wire.CONVERSATION_ID: pc.coalesce(columns["conversation_id"], columns["message_id"]),
            wire.RELATED_TO: columns["message_id"],
            wire.ENCLOSED_MESSAGE_TYPES: _unless(control, _message_types(columns, queue, sending)),
            wire.MESSAGE_INTENT: _intent(columns),
            **_lifetime(milliseconds, queue, delayed, sending),
            **_control(control, columns),
            **_saga(columns),
            wire.CONTENT_TYPE: _unless(control, sending.output(queue).content_type),
            wire.TIME_SENT: wire.format_timestamp(sending.now),
            wire.ORIGINATING_ENDPOINT: sending.endpoint,
            wire.ORIGINATING_MACHINE: wire.machine_name(),
            wire.ORIGINATING_HOST_ID: wire.host_id(),
            wire.REPLY_TO_ADDRESS: reply_to,
        }
    )
    texts: list[str] = headers.to_pylist()
    if columns["headers"].null_count < rows.num_rows:
        texts = [_with_own(text, own) for text, own in zip(texts, columns["headers"].to_pylist(), strict=True)]
    bodies: list[bytes] = pc.fill_null(columns["body"], b"").to_pylist()
    return MessageColumns(queue, delayed, message_ids, milliseconds, texts, bodies)


def _milliseconds(columns: Mapping[str, Any], queue: str, delayed: bool, sending: Sending) -> list[int]:
    """The delay of delayed messages, else the time to live of the row or of its queue."""
    if delayed:
        return list(columns["delay"].to_pylist())
    declared = sending.output(queue).time_to_live
    otherwise = NEVER_EXPIRES if declared is None else round(declared * 1000)
    return list(pc.fill_null(columns["time_to_live"], otherwise).to_pylist())


def _intent(columns: Mapping[str, Any]) -> Any:
    if columns["event"].null_count == len(columns["event"]) and not pc.any(columns["reply"]).as_py():
        return "Send"
    return pc.if_else(columns["reply"], "Reply", pc.if_else(pc.is_valid(columns["event"]), INTENT, "Send"))


def _message_types(columns: Mapping[str, Any], queue: str, sending: Sending) -> Any:
    declared, own = sending.output(queue).message_type, columns["message_type"]
    if own.null_count == len(own):
        return declared
    return own if declared is None else pc.fill_null(own, declared)


def _unless(control: Any, value: Any) -> Any:
    return value if control is None or value is None else pc.if_else(control, pa.scalar(None, pa.string()), value)


def _control(control: Any, columns: Mapping[str, Any]) -> dict[str, Any]:
    if control is None:
        return {}
    flag = pc.if_else(control, wire.format_bool(True), pa.scalar(None, pa.string()))
    return {wire.CONTROL_MESSAGE: flag, wire.RETURN_CODE: pc.cast(columns["code"], pa.string())}


def _saga(columns: Mapping[str, Any]) -> dict[str, Any]:
    """A reply to a saga carries its id and type, so that the saga is found without a mapping."""
    known = {wire.SAGA_ID: columns["saga_id"], wire.SAGA_TYPE: columns["saga_type"]}
    nothing = pa.scalar(None, pa.string())
    return {
        name: pc.if_else(columns["reply"], column, nothing)
        for name, column in known.items()
        if column.null_count < len(column)
    }


def _lifetime(times: Sequence[int], queue: str, delayed: bool, sending: Sending) -> dict[str, Any]:
    if delayed:
        moments = [wire.format_timestamp(sending.now + timedelta(milliseconds=time)) for time in times]
        forward = sending.canonical.get(queue, queue)
        return {wire.DELIVER_AT: pa.array(moments, pa.string()), wire.FORWARD_DESTINATION: forward}
    if set(times) <= {NEVER_EXPIRES}:
        return {}
    spans = [None if time == NEVER_EXPIRES else wire.format_time_span(timedelta(milliseconds=time)) for time in times]
    return {wire.TIME_TO_BE_RECEIVED: pa.array(spans, pa.string())}


def _with_own(text: str, own: Sequence[tuple[str, str | None]] | None) -> str:
    """Headers of the program's own beside the standard ones, which it cannot change."""
    added = {
        name: value for name, value in own or () if value is not None and not name.startswith(wire.RESERVED_PREFIXES)
    }
    return text[:-1] + "," + wire.encode(added)[1:] if added else text
