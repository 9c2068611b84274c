"""The judge of a run: gathers what is known about failures, and keeps messages waiting for their verdict."""

from __future__ import annotations

import hashlib
import logging
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from importlib.metadata import version

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.processing.batch.claimed_batch import ClaimedBatch
from queue_pipeline.processing.batch.report import BatchReport
from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.failures.rate_limit import RateLimit
from queue_pipeline.processing.failures.verdict import Evidence, Probe, Verdict, judge
from queue_pipeline.processing.results.exceptions import cause_of, describe, in_a_line, reason_of
from queue_pipeline.transport.claims.claim import Claim
from queue_pipeline.transport.claims.failure_counts import FailureCounts
from queue_pipeline.transport.texts import shortened

LONGEST_CAUSE = 300
SAMPLE_BYTES = 1_048_576
"""A larger message is not kept to probe with."""
REPEAT_SECONDS = 5.0
"""For how long a failing probe is repeated."""

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Judgement:
    """A verdict, and what it is based on."""

    verdict: Verdict
    tried: str = ""


@dataclass(slots=True)
class _Suspect:
    claim: Claim
    error: Exception
    is_cleared: bool = False
    """Whether another message succeeded after it had failed."""
    is_last: bool = False
    """Whether nothing else was left to try."""
    is_offered: bool = False
    """Whether it is about to be judged again."""


def proof_of(code: str | None, spark_config: Mapping[str, object]) -> str | None:
    """The name of a version of the code with a setting of Spark; None if the code is not watched."""
    if code is None:
        return None
    properties = "".join(f"{name}={value}\n" for name, value in sorted(spark_config.items()))
    setting = hashlib.sha256(f"{version('pyspark')}\n{properties}".encode()).hexdigest()[:12]
    return f"code {code}, Spark {setting}"


class Judge:
    """Says who is to blame for the failures of one run; safe to use from several threads."""

    def __init__(
        self,
        policy: Recoverability,
        probe: Callable[[ClaimedBatch | None], Exception | None],
        limit: RateLimit,
        counts: FailureCounts,
        proof: str | None,
    ) -> None:
        """`probe` runs the transform on a message, or on none, writes nothing, and returns its error.

        `proof` names the code and Spark of the run: the database keeps with which of them a message last succeeded.
        Without it only successes of this run count.
        """
        self._alike_failures = policy.alike_failures
        self._probe = probe
        self._limit = limit
        self._counts = counts
        self._proof = proof
        self._successes = 0
        self._sample: ClaimedBatch | None = None
        self._causes: dict[str, tuple[str, str]] = {}
        self._suspects: dict[str, _Suspect] = {}
        self._blamed: set[str] = set()
        self._together: Judgement | None = None
        self._lock = threading.Lock()

    @property
    def is_searching(self) -> bool:
        """Whether enough messages failed alike that one from elsewhere in the queue is tried next."""
        return len(self._suspects) >= self._alike_failures

    @property
    def needs_sample(self) -> bool:
        """Whether there is no message yet to probe with."""
        return self._sample is None

    def succeeded(self, sample: ClaimedBatch | None = None) -> list[Claim]:
        """Some message was processed; returns those that failed before and can be judged now."""
        with self._lock:
            self._sample = sample or self._sample
            self._causes.clear()
            self._together = None
            self._successes += 1
            is_first = self._successes == 1
            for suspect in self._suspects.values():
                suspect.is_cleared = True
        if is_first and self._proof is not None:
            try:
                self._counts.prove(self._limit.queue, self._proof)
            except QueuePipelineError as error:
                # The message is processed all the same; the next run notes it.
                logger.warning("that %s can be processed could not be noted: %s", self._limit.queue, error)
        return self.offer()

    def processed(self, report: BatchReport, batch: ClaimedBatch) -> list[Claim]:
        """A batch was processed: if any of its messages succeeded, that may decide about others; returns those."""
        if len(report.failed) >= report.messages:
            return []
        return self.succeeded(None if report.failed else _first_of(batch))

    def together(self, error: Exception) -> Judgement:
        """Judge a failure of several messages: the environment, or not known. Probes once until something succeeds."""
        with self._lock:
            known, sample, successes = self._together, self._sample, self._successes
        if known is None:
            known = self._judgement(self._look(sample, error), Verdict.UNKNOWN)
            with self._lock:
                if successes == self._successes:
                    self._together = known
        return known

    def alone(self, claim: Claim, error: Exception) -> Judgement:
        """Judge a failure of one message; if it is not known yet, the message is a suspect from now on."""
        with self._lock:
            suspect = self._suspects.pop(claim.claim_id, None)
            if suspect is not None and suspect.is_cleared:
                self._blamed.add(claim.claim_id)
                return Judgement(Verdict.MESSAGE)
            sample = self._sample
        # A suspect was probed when it failed.
        probed = (Probe.EMPTY_WORKS, None) if suspect is not None else self._look(sample, error)
        is_proven = suspect is not None and suspect.is_last and self._is_proven()
        with self._lock:
            self._causes[claim.claim_id] = reason_of(error)
            alike = Counter(self._causes.values())
            evidence = Evidence(
                probe=probed[0],
                alike=alike[self._causes[claim.claim_id]],
                causes=len(alike),
                is_proven=is_proven,
                is_last=suspect is not None and suspect.is_last,
            )
            verdict = judge(evidence, self._alike_failures, self._limit.failures)
            if verdict is Verdict.UNKNOWN and claim.claim_id in self._blamed:
                # What was to blame before is so until the probe fails.
                verdict = Verdict.MESSAGE
            if verdict is Verdict.UNKNOWN:
                self._suspects[claim.claim_id] = _Suspect(claim, error)
            if verdict is Verdict.MESSAGE:
                self._blamed.add(claim.claim_id)
        return self._judgement(probed, verdict, evidence)

    def suspected(self, claim: Claim) -> Exception | None:
        """The error of a message that waits for its verdict; None if it does not."""
        suspect = self._suspects.get(claim.claim_id)
        return suspect.error if suspect is not None else None

    def offer(self) -> list[Claim]:
        """Messages that wait for their verdict, each once, to be judged by what is known now."""
        with self._lock:
            offered = [suspect for suspect in self._suspects.values() if not suspect.is_offered]
            for suspect in offered:
                suspect.is_offered = True
        return [suspect.claim for suspect in offered]

    def nothing_left(self) -> list[Claim]:
        """Nothing else can be tried: messages that wait for their verdict get it now."""
        with self._lock:
            for suspect in self._suspects.values():
                suspect.is_last = True
        return self.offer()

    def _is_proven(self) -> bool:
        """Whether a message of the queue succeeded with this code and Spark, here or in another process."""
        return self._successes > 0 or (self._proof is not None and self._counts.proof(self._limit.queue) == self._proof)

    def _look(self, sample: ClaimedBatch | None, error: Exception) -> tuple[Probe, Exception | None]:
        """Probe, and repeat a probe that fails quickly: a service that sometimes refuses is not down."""
        works, fails = Probe.SAMPLE_WORKS, Probe.SAMPLE_FAILS
        if sample is None:
            works, fails = Probe.EMPTY_WORKS, Probe.EMPTY_FAILS
        began = time.monotonic()
        for _ in range(self._alike_failures):
            probed = self._probe(sample)
            if probed is None or (sample is None and cause_of(probed) != cause_of(error)):
                return works, probed
            if time.monotonic() - began > REPEAT_SECONDS:
                break
        return fails, probed

    def _judgement(
        self, probed: tuple[Probe, Exception | None], verdict: Verdict, evidence: Evidence | None = None
    ) -> Judgement:
        probe, found = probed
        if probe is Probe.SAMPLE_FAILS and found is not None:
            cause = shortened(in_a_line(describe(found)), LONGEST_CAUSE)
            return Judgement(Verdict.ENVIRONMENT, f"a message that was processed before fails now as well ({cause})")
        if probe is Probe.EMPTY_FAILS:
            return Judgement(Verdict.ENVIRONMENT, "the transform fails in the same way without any message")
        if evidence is None or verdict is not Verdict.ENVIRONMENT:
            return Judgement(verdict)
        failed = f"{evidence.alike:,} different messages failed alone and alike, and none succeeded in between"
        if not evidence.is_last or evidence.alike >= self._alike_failures:
            return Judgement(verdict, failed)
        return Judgement(
            verdict,
            "nothing else is left to try, and no message has succeeded with this code and Spark yet; once one has, "
            "messages that fail go to the error queue",
        )


def _first_of(batch: ClaimedBatch) -> ClaimedBatch | None:
    """A copy of the first message of a batch, unless it is large; a slice would keep the whole batch in memory."""
    if not batch.messages.num_rows or len(batch.messages["body"][0].as_buffer()) > SAMPLE_BYTES:
        return None
    return replace(batch, messages=batch.messages.take([0]), unreadable=())
