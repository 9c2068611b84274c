"""What an error says of a death: which errors Spark had a part in, what batches share, and what an exit code means."""

import signal
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark.errors import PySparkException

from queue_pipeline.processing.spark.errors import involves_spark, shared_loss
from queue_pipeline.processing.spark.own_server import GUARD, cause_of_exit

SIGNALS = sorted(one.value for one in signal.Signals if 0 < one.value < 32)
LOST = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "3.0 (TID 7) (10.0.0.2 executor 3): ExecutorLostFailure (executor 3 exited caused by one of the running tasks) "
    "Reason: Command exited with code 137\nDriver stacktrace:"
)


def of_spark(text):
    return PySparkException(text)


@given(number=st.sampled_from(SIGNALS))
def test_a_signal_is_named_the_same_by_a_shell_and_by_python(number):
    assert cause_of_exit(-number) == cause_of_exit(128 + number)
    assert f"signal {number}" in cause_of_exit(-number)
    assert signal.Signals(number).name in cause_of_exit(-number)


def test_a_kill_says_that_the_kernel_may_have_done_it():
    assert "when the memory of the machine runs out" in cause_of_exit(137)


@given(code=st.integers(0, 127))
def test_an_exit_code_is_named_and_that_of_full_memory_explained(code):
    assert f"exit code {code}" in cause_of_exit(code)
    assert ("java.lang.OutOfMemoryError" in cause_of_exit(code)) == (code == 52)


@given(code=st.integers(-31, 255))
def test_a_log_that_says_so_means_memory_whatever_the_code(code):
    assert "memory ran out" in cause_of_exit(code, "ERROR Executor: java.lang.OutOfMemoryError: Java heap space")


@pytest.mark.parametrize(
    "text",
    ["Job aborted: java.lang.OutOfMemoryError: Java heap space", "[UNABLE_TO_ACQUIRE_MEMORY] Unable to acquire"],
)
def test_memory_of_the_jvm_is_shared(text):
    assert "memory" in shared_loss(of_spark(text))


def test_a_lost_executor_is_shared_and_its_reason_is_kept():
    assert shared_loss(of_spark(LOST)) == "an executor was lost: Command exited with code 137"


@pytest.mark.parametrize(
    "error",
    [
        of_spark("Python worker exited unexpectedly (crashed)"),
        of_spark("[DIVIDE_BY_ZERO] Division by zero"),
        ValueError("java.lang.OutOfMemoryError"),
        MemoryError(),
    ],
)
def test_an_error_that_fails_only_one_batch_is_not_shared(error):
    assert shared_loss(error) is None


@given(names=st.lists(st.sampled_from([ValueError, RuntimeError, KeyError]), max_size=5))
def test_an_error_of_spark_is_found_behind_one_of_a_transform(names):
    error, plain = of_spark("gone"), ValueError("a")
    for kind in names:
        outer, other = kind("mine"), kind("mine")
        outer.__cause__, other.__context__ = error, plain
        error, plain = outer, other
    assert involves_spark(error)
    assert not involves_spark(plain)


def test_a_cyclic_chain_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__context__, two.__context__ = two, one
    assert not involves_spark(one)


def test_a_guarded_process_is_killed_and_its_files_are_removed_when_the_pipe_closes(tmp_path):
    folder = tmp_path / "own"
    folder.mkdir()
    guarded = subprocess.Popen(["sh", "-c", GUARD, "sh", str(folder), "sleep", "1000"], stdin=subprocess.PIPE)
    guarded.stdin.close()
    assert guarded.wait(10) == 128 + signal.SIGKILL
    assert not folder.exists()


@pytest.mark.parametrize(("command", "code"), [("exit 52", 52), ("kill -9 $$", 137), ("kill -6 $$", 134)])
def test_a_guarded_process_that_ends_first_leaves_its_files_and_its_exit_code(tmp_path, command, code):
    command = ["sh", "-c", GUARD, "sh", str(tmp_path), "sh", "-c", command]
    guarded = subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert guarded.wait(10) == code
    assert tmp_path.exists()
    guarded.stdin.close()
