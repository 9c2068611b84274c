"""Errors of Spark as the error queue describes them: a worker's exception as itself, without the JVM's part."""

import textwrap

import pytest

from queue_pipeline.processing.results.exceptions import describe, error_types
from queue_pipeline_tests.support.service_control import parse_frames

HERE = __name__


class Refused(ValueError):
    """An error of a shop."""


def raised(function, *arguments):
    try:
        function(*arguments)
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def failure_of(function, *arguments):
    return describe(raised(function, *arguments))


def raising(error):
    raise error


def frames(failure):
    return [f"{frame.type}.{frame.method}" for frame in parse_frames(failure.stack_trace)]


# What Spark's client raises; its classes are not needed to recognise it.
SparkError = type("PythonException", (Exception,), {"__module__": "pyspark.errors.exceptions.connect"})

WORKER = textwrap.dedent("""
      An exception was thrown from the Python worker. Please see the stack trace below.
    [PYTHON_EXCEPTION] An exception was thrown from the Python worker: Traceback (most recent call last):
      File "/opt/pyspark.zip/pyspark/worker.py", line 4327, in invoke_udf
        run_process()
      File "/opt/pyspark.zip/pyspark/worker.py", line 2884, in <listcomp>
        return [udf_func(*row) for row in rows]
                ^^^^^^^^^^^^^^
      File "/srv/shop/prices.py", line 13, in <lambda>
        raise ValueError("bad")
    {error}
     SQLSTATE: 38000
    """)
CHAINED = textwrap.dedent("""
    Job aborted: org.apache.spark.api.python.PythonException: Traceback (most recent call last):
      File "/srv/shop/prices.py", line 10, in look_up
        {}["a"]
        ~~^^^^^
    KeyError: 'a'

    The above exception was the direct cause of the following exception:

    Traceback (most recent call last):
      File "/srv/shop/prices.py", line 12, in price
        raise Unknown("no price") from error
    shop.errors.Unknown: no price
    for an apple

    \tat org.apache.spark.api.python.BasePythonRunner.handlePythonException(PythonRunner.scala:561)
    \tat java.lang.Thread.run(Thread.java:840)

    Driver stacktrace:
    \tat org.apache.spark.scheduler.DAGScheduler.failJobAndIndependentStages(DAGScheduler.scala:2887)
    """)


def worker(error):
    return failure_of(raising, SparkError(WORKER.replace("{error}", error)))


def test_an_exception_of_a_worker_is_described_as_if_it_were_raised_here():
    failure = worker("ValueError: bad")
    assert (failure.error_type, failure.message, failure.source) == ("builtins.ValueError", "bad", "prices")
    lines = failure.stack_trace.splitlines()
    assert lines[:5] == [
        "builtins.ValueError: bad",
        "   at prices.lambda() in /srv/shop/prices.py:line 13",
        "   at pyspark.worker.listcomp() in /opt/pyspark.zip/pyspark/worker.py:line 2884",
        "   at pyspark.worker.invoke_udf() in /opt/pyspark.zip/pyspark/worker.py:line 4327",
        "   --- End of stack trace from previous location ---",
    ]
    assert lines[5].startswith(f"   at {HERE}.raising() in ")


@pytest.mark.parametrize(
    ("printed", "name", "message"),
    [
        ("ZeroDivisionError", "builtins.ZeroDivisionError", ""),
        ("shop.errors.Odd: one\ntwo: three", "shop.errors.Odd", "one\ntwo: three"),
        ("shop.f.<locals>.Odd: x", "shop.f.Odd", "x"),
        ("Odd: defined in a script", "Odd", "defined in a script"),
        ("KeyError: 'a: b'", "builtins.KeyError", "'a: b'"),
    ],
)
def test_a_workers_exception_is_read_as_python_prints_it(printed, name, message):
    failure = worker(printed)
    assert (failure.error_type, failure.message) == (name, message)


def test_causes_in_a_worker_are_causes_here_and_the_jvm_is_left_out():
    failure = failure_of(raising, SparkError(CHAINED))
    assert (failure.error_type, failure.inner_type) == ("shop.errors.Unknown", "builtins.KeyError")
    assert failure.message == "no price\nfor an apple"
    assert failure.stack_trace.splitlines()[:7] == [
        "shop.errors.Unknown: no price",
        "for an apple",
        " ---> builtins.KeyError: 'a'",
        "   at prices.look_up() in /srv/shop/prices.py:line 10",
        "   --- End of inner exception stack trace ---",
        "   at prices.price() in /srv/shop/prices.py:line 12",
        "   --- End of stack trace from previous location ---",
    ]
    assert "org.apache" not in failure.stack_trace


@pytest.mark.parametrize(("text", "end"), [(WORKER, "ValueError"), (CHAINED, "shop.errors.Unknown")])
def test_a_message_cut_before_the_name_of_its_exception_is_reported_unchanged(text, end):
    cut = text[: text.index(end)]
    failure = describe(SparkError(cut))
    assert failure.error_type == "pyspark.errors.exceptions.connect.PythonException"
    assert failure.message == cut.strip()


@pytest.mark.parametrize("between", [" ", "\n"])
@pytest.mark.parametrize(
    ("printed", "name", "message"),
    [
        ("ValueError: bad\nnews", "builtins.ValueError", "bad\nnews"),
        ("shop.Odd: x", "shop.Odd", "x"),
        ("ZeroDivisionError", "builtins.ZeroDivisionError", ""),
    ],
)
def test_a_worker_that_hides_its_traceback_still_names_its_exception(between, printed, name, message):
    text = f"[PYTHON_EXCEPTION] An exception was thrown from the Python worker:{between}{printed}\n SQLSTATE: 38000"
    failure = describe(SparkError(text))
    assert (failure.error_type, failure.message) == (name, message)


def test_a_group_of_exceptions_in_a_worker_is_named():
    text = textwrap.dedent("""
        thrown from the Python worker:   + Exception Group Traceback (most recent call last):
          |   File "/srv/shop/prices.py", line 3, in price
          |     raise ExceptionGroup("several", [ValueError("a")])
          | ExceptionGroup: several (1 sub-exception)
          +-+---------------- 1 ----------------
            | ValueError: a
            +------------------------------------
        """)
    failure = describe(SparkError(text))
    assert failure.error_type == "builtins.ExceptionGroup"
    assert failure.message.startswith("several (1 sub-exception)")
    assert frames(failure) == ["prices.price"]


def test_only_errors_of_spark_are_parsed_for_errors_of_workers():
    failure = describe(ValueError(WORKER))
    assert failure.error_type == "builtins.ValueError"
    assert failure.message.strip().startswith("An exception was thrown")


def test_other_errors_of_spark_keep_their_condition_and_lose_the_jvm():
    kind = type("NumberFormatException", (Exception,), {"__module__": "pyspark.errors.exceptions.connect"})
    text = "[CAST_INVALID_INPUT] The value 'a'.\n== DataFrame ==\n\"cast\" was called from\n/srv/x.py:41\n\n\n"
    failure = describe(kind(text + "JVM stacktrace:\norg.apache.spark.X\n\tat org.apache.Y(Y.scala:1)"))
    assert failure.error_type == "pyspark.errors.exceptions.connect.NumberFormatException"
    assert failure.message == text.strip()


def test_the_clients_transport_error_is_not_shown_as_a_cause():
    rendezvous = type("_MultiThreadedRendezvous", (Exception,), {"__module__": "grpc._channel"})

    def fail():
        try:
            raise rendezvous("status = INTERNAL")
        except rendezvous:
            raise SparkError("[OH] no")  # noqa: B904

    failure = failure_of(fail)
    assert failure.inner_type is None
    assert "INTERNAL" not in failure.stack_trace


def test_names_of_a_workers_exception_are_those_that_were_printed():
    def names(error):
        return error_types(SparkError(WORKER.replace("{error}", error)))

    assert names("shop.errors.Odd: x") == ("shop.errors.Odd", "Odd")
    assert names("KeyError: 'x'")[:4] == ("builtins.KeyError", "KeyError", "builtins.LookupError", "LookupError")
    assert {f"{HERE}.Refused", "Refused", "ValueError"} <= set(names(f"{HERE}.Refused: no"))
    assert "PythonException" not in names("shop.errors.Odd: x")
