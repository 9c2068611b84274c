"""Ids of results: a function of what they result from, so that a batch that is processed again sends the same ids."""

from __future__ import annotations

import uuid
from collections import Counter
from collections.abc import Sequence
from hashlib import sha1

import pyarrow as pa

from queue_pipeline.processing.arrow import Array
from queue_pipeline.processing.arrow import compute as pc

NAMESPACE = uuid.uuid5(uuid.NAMESPACE_URL, "urn:queue_pipeline:result")
_VARIANT = {digit: "89ab"[int(digit, 16) & 3] for digit in "0123456789abcdef"}
"""The digit of a UUID whose upper two bits name its variant."""


def result_name(row_id: str, pipeline: str, destination: str, ordinal: int) -> str:
    """The name whose UUID of version 5 is the id of a result."""
    return f"{row_id}/{pipeline}/{destination}/{ordinal}"


def result_ids(row_ids: Sequence[str], pipeline: str, destination: str, ordinals: Sequence[int]) -> list[str]:
    """The ids of many results: `uuid.uuid5` of each name, in 1.2 µs instead of 4.3."""
    after = {one: result_name("", pipeline, destination, one).encode() for one in set(ordinals)}
    start = sha1(NAMESPACE.bytes, usedforsecurity=False).copy
    ids = []
    for row_id, ordinal in zip(row_ids, ordinals, strict=True):
        digest = start()
        digest.update(row_id.encode() + after[ordinal])
        digits = digest.hexdigest()
        variant = _VARIANT[digits[16]]
        ids.append(f"{digits[:8]}-{digits[8:12]}-5{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:32]}")
    return ids


def number_results(row_ids: Array, given: Array, bodies: Array) -> list[int]:
    """The ordinal of each result among those of its message for one queue.

    The numbers of the transform, if they differ within the message; else the position in the order of number and body,
    which does not depend on how Spark arranged the rows.
    """
    ordinals = pc.fill_null(given, 0)
    table = pa.table({"id": row_ids, "ordinal": ordinals})
    if table.group_by(["id", "ordinal"], use_threads=False).aggregate([]).num_rows == len(row_ids):
        return list(ordinals.to_pylist())
    ids, numbers, contents = row_ids.to_pylist(), ordinals.to_pylist(), bodies.to_pylist()
    repeated = {id_ for (id_, _), count in Counter(zip(ids, numbers, strict=True)).items() if count > 1}
    counted = dict.fromkeys(repeated, 0)
    result = list(numbers)
    alike = [at for at, id_ in enumerate(ids) if id_ in repeated]
    for at in sorted(alike, key=lambda at: (ids[at], numbers[at], contents[at] or b"")):
        result[at] = counted[ids[at]]
        counted[ids[at]] += 1
    return result
