"""What the results of a transform must be like: where they belong, where they go, how long they live."""

from __future__ import annotations

from collections.abc import Collection

import pyarrow as pa

from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.envelopes import Sorted
from queue_pipeline.processing.errors import TransformError


def strangers(pipeline: str, ids: Array) -> TransformError:
    """The error of results that relate to these ids, which are of no message of the batch."""
    named = ids[0].as_py() if len(ids) else "unknown"
    return TransformError(
        f"pipeline {pipeline}: {len(ids)} of the transform's results belong to no message of the batch "
        f"(id {named}); keep origin or id as they are, and take F.min('origin') for a group"
    )


def check_strangers(pipeline: str, outcomes: Sorted, first_row_version: int) -> None:
    """Refuse strangers where only a part of the batch is at hand: their origin is null, or out of range."""
    versions = pc.fill_null(outcomes.sends["row_version"], -1)
    sent = outcomes.sends["id"].filter(pc.less(versions, first_row_version))
    failed = [failed.id for failed in outcomes.failures if failed.row_version < first_row_version]
    for ids in (sent, pa.array(failed, pa.string())):
        if len(ids):
            raise strangers(pipeline, ids)


def check_outputs(pipeline: str, known: Collection[str], sends: Table) -> None:
    """Every result goes to a declared queue, or back to who asked."""
    named = sends.filter(pc.invert(pc.or_(sends["reply"], pc.is_valid(sends["event"]))))["destination"]
    unknown = sorted(str(name) for name in set(pc.unique(named).to_pylist()) - set(known))
    if unknown:
        raise TransformError(
            f"pipeline {pipeline}: the transform sends to {', '.join(unknown)}, which is not among its "
            f"output_queues ({', '.join(sorted(known)) or 'none'}); add it there, or correct the name"
        )


def check_events(pipeline: str, known: Collection[str], sends: Table) -> None:
    """Every event is declared, with what is above its type: subscribers of that would miss it otherwise."""
    unknown = sorted(set(pc.unique(sends["event"].drop_null()).to_pylist()) - set(known))
    if unknown:
        raise TransformError(
            f"pipeline {pipeline}: the transform publishes {', '.join(unknown)}, which is not among what it publishes "
            f"({', '.join(sorted(known)) or 'nothing'}); add it to publishes, or correct the name"
        )


def check_lifetimes(pipeline: str, sends: Table) -> None:
    """No result is delayed and short-lived."""
    both = sends.filter(pc.and_(pc.is_valid(sends["delay"]), pc.is_valid(sends["time_to_live"])))
    if both.num_rows:
        raise TransformError(
            f"pipeline {pipeline}: a result of message {both['id'][0].as_py()} has a delay and a time to live; "
            "delayed delivery with a time to live is not supported: give one or the other"
        )


def check_codes(pipeline: str, sends: Table) -> None:
    """A reply is a message or a number."""
    both = sends.filter(pc.and_(pc.is_valid(sends["code"]), pc.is_valid(sends["body"])))
    if both.num_rows:
        raise TransformError(
            f"pipeline {pipeline}: a reply to message {both['id'][0].as_py()} has a code and a body; give one of them"
        )
