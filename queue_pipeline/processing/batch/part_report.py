"""What the task that read a part of a claim reports of it: which rows it saw, and which the transform never sees."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic import BaseModel, ConfigDict

from queue_pipeline.processing.arrow import Table
from queue_pipeline.processing.batch.claimed_batch import Unreadable, parse_bodies, prepare, without_control
from queue_pipeline.processing.body.parse import BodyParser
from queue_pipeline.processing.results.sorting import ROW_VERSION
from queue_pipeline.transport.claims.claim import RowsRead
from queue_pipeline.transport.failed.error_message import Failure

QUANTILES = 200
"""Into this many steps the times of sending are summed up: enough for percentiles, and the same size for any part."""


class PartReport(BaseModel):
    """Reading a part again, as Spark may, makes the same report."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    read: RowsRead
    rows: list[tuple[int, int]]
    """Ranges of row versions."""
    expected: list[tuple[int, int]]
    """Those of messages that should have an outcome: control messages and what is refused here need none."""
    unreadable: list[Unreadable]
    refused: dict[int, Failure]
    times: list[int]
    """When messages were sent: quantiles in microseconds."""
    known: int
    """How many messages say when they were sent."""
    oldest_id: str | None


@dataclass(frozen=True, slots=True)
class ReadPart:
    """The messages of a part that the transform sees, and the report of all of them."""

    messages: Table
    report: PartReport


def read_part(part: Any, parser: BodyParser | None) -> ReadPart:
    """Take apart headers and bodies of a part as it was read."""
    versions = part.column(ROW_VERSION)
    readable, unreadable = prepare(part)
    messages, refused = parse_bodies(parser, pa.Table.from_batches([readable]))
    expected = messages if parser is not None else without_control(messages)
    sent = readable.column("enqueued").cast(pa.int64())
    known = sent.drop_null().to_numpy()
    steps = np.linspace(0.0, 1.0, QUANTILES + 1)
    times = np.quantile(known, steps, method="nearest").tolist() if len(known) else []
    oldest = readable.column("id")[int(np.argmin(sent.fill_null(2**63 - 1).to_numpy()))].as_py() if times else None
    report = PartReport(
        read=RowsRead.of(versions.to_numpy().tolist()),
        rows=row_ranges(versions.to_numpy()),
        expected=row_ranges(expected[ROW_VERSION].to_numpy()),
        unreadable=unreadable,
        refused=refused,
        times=times,
        known=len(known),
        oldest_id=oldest,
    )
    return ReadPart(messages, report)


def row_ranges(row_versions: Any) -> list[tuple[int, int]]:
    """Row versions as ranges of those that follow one another."""
    versions = np.unique(row_versions)
    if not len(versions):
        return []
    gaps = np.flatnonzero(np.diff(versions) != 1)
    firsts, lasts = versions[np.append(0, gaps + 1)], versions[np.append(gaps, len(versions) - 1)]
    return list(zip(firsts.tolist(), lasts.tolist(), strict=True))


def row_versions(ranges: Iterable[tuple[int, int]]) -> Any:
    """The row versions of ranges that do not overlap, in order."""
    bounds = np.array(sorted(ranges), np.int64).reshape(-1, 2)
    lengths = bounds[:, 1] - bounds[:, 0] + 1
    before = np.cumsum(lengths) - lengths
    return np.arange(lengths.sum()) + np.repeat(bounds[:, 0] - before, lengths)


def outside(ranges: Iterable[tuple[int, int]], known: Sequence[tuple[int, int]]) -> int | None:
    """A row version of some ranges that others do not hold; None if they hold all of them."""
    held: list[tuple[int, int]] = []
    for first, last in sorted(known):
        if held and held[-1][1] + 1 == first:
            held[-1] = (held[-1][0], last)
        else:
            held.append((first, last))
    lasts = [last for _, last in held]
    for first, last in ranges:
        at = int(np.searchsorted(lasts, first))
        if at == len(held) or held[at][0] > first:
            return first
        if held[at][1] < last:
            return held[at][1] + 1
    return None
