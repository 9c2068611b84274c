"""What the judge of a run remembers between failures."""

from unittest.mock import Mock

from queue_pipeline.processing.declaration.recoverability import Recoverability
from queue_pipeline.processing.failures.judge import Judge
from queue_pipeline.processing.failures.verdict import Verdict

ERROR = ValueError("no")


def test_a_verdict_is_kept_until_a_message_succeeds():
    probes = []
    judge = Judge(Recoverability(), lambda sample: probes.append(sample) or ERROR, Mock(), Mock(), None)
    assert [judge.together(ERROR).verdict for _ in range(2)] == [Verdict.ENVIRONMENT] * 2
    assert len(probes) == Recoverability().alike_failures
    judge.succeeded()
    judge.together(ERROR)
    assert len(probes) == 2 * Recoverability().alike_failures


def test_a_verdict_is_not_kept_when_a_message_succeeded_during_the_probe():
    def probe(sample):
        judge.succeeded()
        return ERROR

    judge = Judge(Recoverability(), probe, Mock(), Mock(), None)
    assert judge.together(ERROR).verdict is Verdict.ENVIRONMENT
    judge._probe = lambda sample: None
    assert judge.together(ERROR).verdict is Verdict.UNKNOWN
