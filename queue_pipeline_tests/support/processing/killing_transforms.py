"""Transforms whose messages end the Spark that works on them, each in another way."""

from pyspark.sql import functions as F

KILLER = b"5"
MEETING = "QUEUE_PIPELINE_TEST_MEETING"
"""A folder: the killer waits there until a batch of another pipeline is in work on the same Spark."""


def kill_server(messages):
    """The message `5` has its worker kill the server by SIGKILL."""

    @F.udf("binary")
    def work(body):
        import os
        import signal
        from pathlib import Path

        from queue_pipeline_tests.support.waiting import eventually

        pid, meeting = os.getpid(), os.environ.get(MEETING)
        if meeting and bytes(body) == KILLER:
            eventually(Path(meeting, "in work").exists, seconds=100)
            Path(meeting, "killed").touch()
        while bytes(body) == KILLER and pid > 1:
            if "SparkConnectServer" in Path(f"/proc/{pid}/cmdline").read_text():
                os.kill(pid, signal.SIGKILL)
            pid = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        return body

    return messages.select("origin", work("body").alias("body"))


def fill_heap(messages):
    """The message `5` has Java gather an array that its memory does not hold."""
    is_killer = F.col("body") == F.lit(KILLER)
    numbers = F.sequence(F.lit(0), F.when(is_killer, F.lit(1_500_000_000)).otherwise(F.lit(1)))
    return messages.select("origin", "body", F.size(F.shuffle(numbers)).alias("n")).where("n > 0").drop("n")


def be_killed(messages):
    """Is in work when the killer strikes, and sends every body on after that."""

    @F.udf("binary")
    def work(body):
        import os
        import time
        from pathlib import Path

        meeting = Path(os.environ[MEETING])
        (meeting / "in work").touch()
        while not (meeting / "killed").exists():
            time.sleep(0.1)
        if not (meeting / "struck").exists():
            # The server dies now; a worker that outlives it does not matter.
            (meeting / "struck").touch()
            time.sleep(5)
        return body

    return messages.select("origin", work("body").alias("body"))
