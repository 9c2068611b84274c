"""Ids of results: a function of what they result from, so that a batch that is processed again sends the same ids."""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from hashlib import sha1
from typing import Any

import numpy as np
import pyarrow as pa

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.transport.arrow_column import uuid_texts

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:queue_pipeline:result")


def result_name(row_id: str, pipeline: str, destination: str, ordinal: int) -> str:
    """What a result's id is the UUID of version 5 of."""
    return f"{row_id}/{pipeline}/{destination}/{ordinal}"


def result_ids(row_ids: Sequence[str] | Array, pipeline: str, destination: str, ordinals: Sequence[int]) -> Array:
    """The ids of many results: `uuid.uuid5` of each name, at a fifth of its time."""
    after = {one: result_name("", pipeline, destination, one).encode() for one in set(ordinals)}
    rows = row_ids if isinstance(row_ids, pa.Array) else pa.array(row_ids, pa.string())
    start = sha1(NAMESPACE.bytes, usedforsecurity=False).copy
    digests = []
    names: list[Any] = rows.cast(pa.binary()).to_pylist()
    for row_id, ordinal in zip(names, ordinals, strict=True):
        digest = start()
        digest.update(row_id + after[ordinal])
        digests.append(digest.digest())
    values = np.frombuffer(b"".join(digests), np.uint8).reshape(-1, sha1().digest_size)[:, :16].copy()
    values[:, 6] = values[:, 6] & 0x0F | 0x50
    values[:, 8] = values[:, 8] & 0x3F | 0x80
    return uuid_texts(values.tobytes())


def number_results(row_ids: Array, given: Array, bodies: Array) -> list[int]:
    """The place of each result among those of its message for one queue.

    The numbers that the transform gave, if they tell all results apart; else results are counted in the order of number
    and body, which is the same however Spark arranged the rows.
    """
    ordinals = pc.fill_null(given, 0)
    table = pa.table({"id": row_ids, "ordinal": ordinals})
    if table.group_by(["id", "ordinal"], use_threads=False).aggregate([]).num_rows == len(row_ids):
        return list(ordinals.to_pylist())
    ids, numbers, contents = row_ids.to_pylist(), ordinals.to_pylist(), bodies.to_pylist()
    counted = dict.fromkeys(ids, 0)
    result = [0] * len(ids)
    for at in sorted(range(len(ids)), key=lambda at: (ids[at], numbers[at], contents[at] or b"")):
        result[at] = counted[ids[at]]
        counted[ids[at]] += 1
    return result
