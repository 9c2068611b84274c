"""When the messages of a batch were sent: all that a report about their latencies needs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import pyarrow as pa

from queue_pipeline.processing.arrow import Array, Table
from queue_pipeline.processing.arrow import compute as pc
from queue_pipeline.processing.batch.part_report import PartReport

SLOWEST_KEPT = 5


@dataclass(frozen=True, slots=True)
class SentTimes:
    """A time per message, in microseconds; null where its sender wrote none."""

    times: Array
    oldest: Sequence[tuple[str, int]]
    """The messages that were sent first, by id."""

    @staticmethod
    def of_messages(messages: Table) -> SentTimes:
        """The times of messages that are in this process."""
        times = messages["enqueued"].cast(pa.int64())
        known = pa.table({"id": messages["id"], "time": times}).filter(pc.is_valid(times))
        first: Table = known.take(pc.select_k_unstable(known, SLOWEST_KEPT, [("time", "ascending")]))
        return SentTimes(times, [(row["id"], row["time"]) for row in first.to_pylist()])

    @staticmethod
    def of_parts(reports: Iterable[PartReport]) -> SentTimes:
        """The times that tasks counted: quantiles, each of which stands for its share of the messages of a part."""
        parts = [part for part in reports if part.times]
        times = np.concatenate([_of_part(part) for part in parts] or [np.zeros(0, np.int64)])
        oldest = sorted(((str(part.oldest_id), part.times[0]) for part in parts), key=lambda one: one[1])
        return SentTimes(pa.chunked_array([pa.array(times)]), oldest[:SLOWEST_KEPT])

    def latencies(self, now: datetime) -> Array:
        """Seconds from the sender's clock until now."""
        elapsed = pc.subtract(pa.scalar(_microseconds(now), pa.int64()), self.times)
        return pc.divide(pc.cast(elapsed, pa.float64()), 1e6)

    def slowest(self, now: datetime) -> list[tuple[str, float]]:
        """The messages that took longest until now, with their seconds."""
        return [(identity, (_microseconds(now) - time) / 1e6) for identity, time in self.oldest]


def _of_part(part: PartReport) -> Array:
    places = np.linspace(0, len(part.times) - 1, part.known).round().astype(int)
    return np.array(part.times, np.int64)[places]


def _microseconds(moment: datetime) -> int:
    return round(moment.timestamp() * 1e6)
