"""Deaths of Spark: batches that were in work when Spark died are tried alone, to find the one that killed it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from queue_pipeline.processing.errors import SparkKilledError, SparkLostError
from queue_pipeline.processing.failures.rate_limit import RateLimit
from queue_pipeline.processing.results.exceptions import describe, in_a_line
from queue_pipeline.processing.spark.errors import involves_spark, shared_loss
from queue_pipeline.processing.spark.run_spark import RunSpark
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.claims import Claims


@dataclass(frozen=True, slots=True)
class Death:
    """What was lost that batches share: Spark itself, or memory or executors of a Spark that still answers."""

    what: str
    is_gone: bool


class SparkDeaths:
    """Decides whether Spark died, and which batch this is counted against.

    If several batches shared Spark, none is counted and all are isolated. Only the death of a Spark that worked on one
    batch alone is a failure of that batch.
    """

    def __init__(self, claims: Claims, answers: Callable[[], bool], limit: RateLimit, spark: RunSpark | None) -> None:
        """`answers`: whether Spark answers. Without a `spark`, this process cannot start a new one."""
        self._claims = claims
        self._answers = answers
        self._limit = limit
        self._spark = spark

    def prepare(self, claim: Claim) -> None:
        """Choose the Spark for a batch: one of this run's own if it is isolated."""
        if self._spark is not None:
            self._spark.isolate(claim.isolated)

    def death(self, claim: Claim, error: Exception) -> Death | None:
        """What died with a batch; None if its failure is its own."""
        if (claim.isolated or involves_spark(error)) and not self._answers():
            what = self._spark.what_ended_it() if self._spark is not None else "it does not answer"
            return Death(f"{what} ({in_a_line(describe(error))})", is_gone=True)
        lost = shared_loss(error)
        return None if lost is None else Death(lost, is_gone=False)

    def isolate(self, claim: Claim, death: Death, error: Exception) -> Claim:
        """Mark a batch that shared its Spark, uncounted; the run ends if Spark is gone."""
        claim, in_a_row = self._claims.isolate(claim, f"Spark died: {death.what}")
        self._limit.failed(in_a_row)
        if death.is_gone:
            raise SparkLostError(
                f"Spark went away while it worked on {claim.messages:,} message(s) of {claim.queue}: {death.what}. "
                "Nothing was counted; the next run tries these messages alone, on a Spark of their own"
            ) from error
        return claim

    def failure(self, claim: Claim, death: Death, error: Exception) -> SparkKilledError:
        """The failure of a batch that Spark died of. It is counted here if this run cannot go on with a new Spark."""
        killed = SparkKilledError(
            f"Spark died while it worked on {claim.messages:,} message(s) of {claim.queue} and on nothing else: "
            f"{death.what}"
        )
        killed.__cause__ = error
        if death.is_gone and self._spark is not None and self._spark.can_restart:
            # The next isolated batch starts another.
            self._spark.close()
        elif death.is_gone:
            claim, in_a_row = self._claims.fail(claim, in_a_line(describe(killed)))
            self._limit.failed(in_a_row)
            again = ", in halves" if claim.messages > 1 else ""
            raise SparkLostError(f"{killed}. The next run tries again{again}") from error
        return killed
