"""What relates a result to its message: taken along through Spark, or looked up where the batch is at hand.

Spark hands back results as rows of (origin, outcome). On the driver's way the messages are still here, so the number of
the row is all that has to come back: Spark drops the rest of the origin before it reads it. Seven texts a message less
are read, copied from row to row and sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.messages_frame import ORIGIN
from queue_pipeline.processing.outcomes import OUTCOME, OUTCOME_FIELDS

NUMBER = "row_version"
_CARRIED = ("id", "message_id", "correlation_id", "conversation_id", "saga_id", "saga_type")
"""Of an origin, beside its number and where a reply goes."""


def flat(outcomes: Table) -> Table:
    """The fields of origin and outcome side by side, with the queue that each result goes to."""
    origin, outcome = (outcomes[name].combine_chunks() for name in (ORIGIN, OUTCOME))
    fields = {name: pc.struct_field(outcome, name) for name in OUTCOME_FIELDS}
    return _side_by_side({name: pc.struct_field(origin, name) for name in (NUMBER, "reply_to", *_CARRIED)}, fields)


def narrowed(outcomes: DataFrame) -> DataFrame:
    """Rows of (origin, outcome) as `related` takes them."""
    fields = [F.col(f"{OUTCOME}.{name}").alias(name) for name in OUTCOME_FIELDS]
    return outcomes.select(F.col(f"{ORIGIN}.{NUMBER}").alias(NUMBER), *fields)


def related(found: Table, messages: Table) -> Table | None:
    """The same as `flat`, of what became of a narrowed frame; None when a result belongs to none of the messages."""
    numbers = pc.fill_null(found[NUMBER], -1).combine_chunks().to_numpy()
    known = messages[NUMBER].to_numpy()
    if not np.array_equal(numbers, known):
        order = np.argsort(known, kind="stable")
        places = np.searchsorted(known, numbers, sorter=order)
        if len(numbers) and (not len(known) or places.max() == len(known)):
            return None
        places = order[places]
        if not np.array_equal(known[places], numbers):
            return None
        messages = messages.select(["reply_to", *_CARRIED]).take(pa.array(places, pa.int64()))
    origin = {name: messages[name].combine_chunks() for name in ("reply_to", *_CARRIED)}
    fields = {name: found[name].combine_chunks() for name in OUTCOME_FIELDS}
    return _side_by_side({NUMBER: found[NUMBER].combine_chunks(), **origin}, fields)


def _side_by_side(origin: Mapping[str, Any], outcome: Mapping[str, Any]) -> Table:
    reply = pc.fill_null(outcome["reply"], False)
    destination = outcome["destination"]
    if pc.any(reply).as_py():
        destination = pc.if_else(reply, origin["reply_to"], destination)
    carried = {name: origin[name] for name in (NUMBER, *_CARRIED)}
    return pa.table({**carried, **outcome, "destination": destination, "reply": reply})
