"""Exceptions as the error queue describes them: their names, and stack traces in the form of .NET."""

import functools
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from queue_pipeline.processing.results.exceptions import LONGEST_TEXT, describe, error_types
from queue_pipeline.transport.failed.error_message import LONGEST_MESSAGE, Failure
from queue_pipeline.transport.failed.stack_frames import module_of
from queue_pipeline_tests.support.service_control import parse_frames

HERE = __name__
FILE = str(Path(__file__).resolve())


class Refused(ValueError):
    """A business error with facts."""

    def __init__(self, message, data=None):
        super().__init__(message)
        self.data = data


class Till:
    """Something with methods."""

    def count(self):
        return self._count(0)

    def _count(self, divisor):
        return 1 / divisor


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


def chained(*messages):
    """An exception for each message, each the cause of the one before."""
    inner = None
    for message in reversed(messages):
        try:
            raise KeyError(message) from inner
        except KeyError as error:
            inner = error
    return inner


def frames(failure):
    return [f"{frame.type}.{frame.method}" for frame in parse_frames(failure.stack_trace)]


def test_a_type_has_its_module_before_it_even_if_it_is_pythons_own():
    assert failure_of(int, "x").error_type == "builtins.ValueError"
    assert describe(Refused("no")).error_type == f"{HERE}.Refused"
    assert failure_of(json.loads, "{").error_type == "json.decoder.JSONDecodeError"


def test_a_type_made_in_a_function_has_a_name_without_brackets():
    class Local(Exception):
        pass

    name = describe(Local()).error_type
    assert name == f"{HERE}.test_a_type_made_in_a_function_has_a_name_without_brackets.Local"


def test_frames_are_those_of_dot_net_with_the_innermost_first():
    failure = failure_of(Till().count)
    title, first, second, *_ = failure.stack_trace.splitlines()
    assert title == "builtins.ZeroDivisionError: division by zero"
    assert re.fullmatch(rf"   at {re.escape(HERE)}\.Till\._count\(\) in {re.escape(FILE)}:line \d+", first)
    assert re.fullmatch(rf"   at {re.escape(HERE)}\.Till\.count\(\) in {re.escape(FILE)}:line \d+", second)
    assert frames(failure) == [f"{HERE}.Till._count", f"{HERE}.Till.count", f"{HERE}.raised"]


def test_the_line_is_the_one_that_raised():
    (first, *_) = parse_frames(failure_of(Till().count).stack_trace)
    assert "return 1 / divisor" in Path(first.file).read_text().splitlines()[first.line - 1]


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda: [int(x) for x in "a"], "lambda.listcomp"),
        (lambda: raising(next(int(x) for x in "a")), "lambda.genexpr"),
        (functools.partial(lambda: 1 / 0), "lambda"),
    ],
)
def test_names_that_python_writes_in_brackets_lose_them(function, name):
    assert frames(failure_of(function))[0] == f"{HERE}.{name}"


def test_code_that_never_was_in_a_file_has_a_frame_without_one():
    failure = failure_of(exec, "def f():\n    1 / 0\nf()", {"__name__": "made.up"})
    assert failure.stack_trace.splitlines()[1:3] == ["   at made.up.f()", "   at made.up.module()"]
    assert frames(failure)[:2] == ["made.up.f", "made.up.module"]


def test_code_without_a_module_is_named_after_its_file():
    code = compile("1 / 0", "/srv/shop/a prices.py", "exec")
    failure = failure_of(exec, code, {"__name__": None})
    assert failure.stack_trace.splitlines()[1] == "   at a_prices.module() in /srv/shop/a prices.py:line 1"
    (first, *_) = parse_frames(failure.stack_trace)
    assert (first.file, first.line) == ("/srv/shop/a prices.py", 1)


def test_relative_paths_become_absolute(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    failure = failure_of(exec, compile("1 / 0", "script.py", "exec"), {"__name__": "__main__"})
    assert failure.stack_trace.splitlines()[1] == f"   at __main__.module() in {tmp_path}/script.py:line 1"


def test_the_source_is_the_package_that_raised():
    assert failure_of(Till().count).source == HERE.partition(".")[0]
    assert failure_of(json.loads, "{").source == "json"
    assert describe(ValueError("never raised")).source is None


def test_an_exception_that_was_never_raised_has_no_frames_in_its_text():
    assert describe(ValueError("bad")) == Failure("builtins.ValueError", "bad", "builtins.ValueError: bad")
    assert describe(ValueError()).stack_trace == "builtins.ValueError"


def test_a_cause_is_nested_and_its_frames_come_first():
    def fail():
        try:
            Till().count()
        except ZeroDivisionError as error:
            raise Refused("no change") from error

    failure = failure_of(fail)
    lines = failure.stack_trace.splitlines()
    assert (failure.error_type, failure.message) == (f"{HERE}.Refused", "no change")
    assert failure.inner_type == "builtins.ZeroDivisionError"
    assert lines[:2] == [f"{HERE}.Refused: no change", " ---> builtins.ZeroDivisionError: division by zero"]
    assert lines[2].startswith(f"   at {HERE}.Till._count() in ")
    end = lines.index("   --- End of inner exception stack trace ---")
    assert lines[end + 1].startswith(
        f"   at {HERE}.test_a_cause_is_nested_and_its_frames_come_first.fail() in {FILE}:line "
    )


def test_causes_of_causes_are_listed_from_the_outside_in():
    lines = describe(chained("a", "b", "c")).stack_trace.splitlines()
    assert lines[:3] == ["builtins.KeyError: 'a'", " ---> builtins.KeyError: 'b'", " ---> builtins.KeyError: 'c'"]
    assert [line for line in lines[3:] if line.startswith("   at")] == [
        line for line in lines if f"   at {HERE}.chained() in" in line
    ]
    assert lines.count("   --- End of inner exception stack trace ---") == 2
    assert lines[-1].startswith("   at")


def test_what_was_being_handled_counts_as_a_cause_unless_the_program_says_otherwise():
    def fail(suppressed):
        try:
            Till().count()
        except ZeroDivisionError:
            if suppressed:
                raise Refused("no") from None
            raise Refused("no")  # noqa: B904

    assert failure_of(fail, False).inner_type == "builtins.ZeroDivisionError"
    assert failure_of(fail, True).inner_type is None
    assert "ZeroDivision" not in failure_of(fail, True).stack_trace


def test_the_first_of_a_group_counts_as_its_cause():
    failure = describe(ExceptionGroup("several", [Refused("first"), KeyError("second")]))
    assert failure.error_type == "builtins.ExceptionGroup"
    assert failure.inner_type == f"{HERE}.Refused"


def test_a_cyclic_chain_ends():
    first, second = ValueError("first"), ValueError("second")
    first.__cause__, second.__cause__ = second, first
    assert describe(first).stack_trace.splitlines() == [
        "builtins.ValueError: first",
        " ---> builtins.ValueError: second",
        "   --- End of inner exception stack trace ---",
    ]


def test_a_deep_chain_ends():
    lines = describe(chained(*map(str, range(500)))).stack_trace.splitlines()
    assert sum(line.startswith(" ---> ") for line in lines) == 9


def test_an_endless_recursion_shows_where_it_began_and_where_it_ended():
    def again(depth):
        return again(depth + 1)

    failure = failure_of(again, 0)
    assert failure.error_type == "builtins.RecursionError"
    assert re.search(r"\n   --- \d+ frames left out ---\n", failure.stack_trace)
    names = frames(failure)
    assert len(names) == 100
    assert names[-1] == f"{HERE}.raised"


def test_a_long_text_ends_with_a_whole_line_and_keeps_the_innermost_frames():
    error = chained(*("é" * 100_000 for _ in range(8)))
    code = compile("\n" * 41 + "raise error", "/srv/" + "x" * 4_000 + ".py", "exec")
    for _ in range(30):
        error = raised(exec, code, {"__name__": "deep", "error": error})
    text = describe(error).stack_trace
    assert len(text) <= LONGEST_TEXT
    assert len(text) > LONGEST_TEXT - 5_000
    last = text.splitlines()[-1]
    assert last.startswith("   at ") and re.search(r":line \d+$", last)


def test_a_long_message_is_cut_in_the_text_as_in_its_header():
    failure = describe(ValueError("x" * 100_000))
    assert failure.message == "x" * LONGEST_MESSAGE
    assert failure.stack_trace == f"builtins.ValueError: {failure.message}"


def test_the_notes_of_an_exception_follow_its_message():
    error = ValueError("bad")
    error.add_note("order 7")
    error.add_note("of customer 8")
    failure = describe(error)
    assert failure.message == "bad\norder 7\nof customer 8"
    assert failure.stack_trace == "builtins.ValueError: bad\norder 7\nof customer 8"


def test_facts_that_an_exception_carries_are_kept_as_text():
    assert describe(Refused("no", {"order": 7, 8: None})).data == {"order": "7", "8": "None"}


@pytest.mark.parametrize("data", [None, "text", ["list"], 7])
def test_data_that_is_no_mapping_is_left_unchanged(data):
    assert describe(Refused("no", data)).data == {}


def test_many_or_long_facts_are_bounded():
    data = describe(Refused("no", {f"{n} is long" * 100: "v" * 100_000 for n in range(1_000)})).data
    assert len(data) == 20
    assert max(map(len, data)) == 100
    assert max(map(len, data.values())) == 2_048


def test_an_exception_that_cannot_be_described_is_still_reported():
    class Mute(Exception):
        def __str__(self):
            raise RuntimeError("no words")

        @property
        def data(self):
            raise RuntimeError("no facts")

    error = Mute()
    error.__notes__ = [Mute(), "a note"]
    failure = describe(error)
    assert failure.message == "\n".join(["(it cannot be described: RuntimeError)"] * 2 + ["a note"])
    assert failure.data == {}


def test_characters_that_no_database_stores_are_removed():
    failure = describe(Refused("a\0b\ud800c", {"k\0": "\udc00v"}))
    assert failure.message == "ab\ufffdc"
    assert failure.data == {"k": "\ufffdv"}
    assert failure.stack_trace == f"{HERE}.Refused: ab\ufffdc"


def test_an_error_matches_its_own_name_and_those_of_its_bases():
    names = error_types(Refused("no"))
    assert names[:2] == (f"{HERE}.Refused", "Refused")
    assert {"builtins.ValueError", "ValueError", "builtins.Exception", "Exception"} <= set(names)
    assert "object" not in names
    assert len(names) == len(set(names))


def test_an_error_also_matches_its_name_in_the_package_that_exports_it():
    assert "json.JSONDecodeError" in error_types(raised(json.loads, "{"))


def test_describing_does_not_load_spark():
    program = "import queue_pipeline.processing.results.exceptions as text, sys; text.describe(ValueError('x')); "
    loaded = subprocess.run(
        [sys.executable, "-c", program + "print([name for name in sys.modules if name.startswith('pyspark')])"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert loaded.stdout.strip() == "[]"


def test_a_file_has_the_name_under_which_it_is_imported():
    assert module_of(FILE) == HERE
    assert module_of(json.__file__) == "json"
    assert module_of(json.decoder.__file__) == "json.decoder"
    assert module_of("/x/lib/python3.11/site-packages/shop/orders.py") == "shop.orders"
    assert module_of("/x/pyspark.zip/pyspark/worker.py") == "pyspark.worker"
    assert module_of("/nowhere/on the path/script.py") == "script"
