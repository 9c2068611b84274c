"""Bodies parsed by pydantic: what a message is refused for, and that no other message pays for it."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Annotated

import pytest
from pydantic import (
    AfterValidator,
    BaseModel,
    Field,
    computed_field,
    create_model,
)

from queue_pipeline.processing.body.parse import UNREADABLE_BODY
from queue_pipeline_tests.support.processing.bodies import parsed, payload, plain, problem
from queue_pipeline_tests.support.processing.body_models import Order, one_field


def test_problems_are_reported_in_pydantics_words_with_their_place():
    assert problem(Order, '{"Id":"a","Lines":[{"Sku":"x","Quantity":0}]}') == (
        "Lines.0.Quantity: Input should be greater than or equal to 1 (given: 0)"
    )


def test_several_problems_are_shown_and_many_are_counted():
    text = problem(Order, '{"Lines":[' + ",".join(['{"Sku":"x","Quantity":"y"}'] * 1000) + "]}")
    assert text.startswith("Id: Field required; Lines.0.Quantity: Input should be a valid integer, unable to parse")
    assert text.endswith("and 996 more")


def test_a_huge_value_is_not_repeated():
    huge = "x" * 1_000_000
    for body in (f'{{"Id":{{"{huge}":1}}}}', f'{{"Id":"a","Lines":"{huge}"}}', f'{{"{huge}":1}}', f'{{"Id":"{huge}'):
        assert len(problem(Order, body)) < 1_100
    assert len(problem(one_field(dict[str, int]), f'{{"f":{{"{huge}":"x"}}}}')) < 1_100
    assert len(problem(one_field(dict[str, int]), f'{{"f":{{"{huge}":{2**63}}}}}')) < 1_100


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (None, "the body is empty"),
        ("", "the body is empty"),
        ("\ufeff", "the body is empty"),
        (" \r\n\t", "the body is empty"),
        ("null", "Input should be an object"),
        ("[]", "Input should be an object"),
        ('"text"', "Input should be an object"),
        ("12", "Input should be an object"),
        ("NaN", "Input should be an object"),
        ('{"Id":"a"}{"Id":"a"}', "Invalid JSON: trailing characters"),
        ('{"Id":"a"} junk', "Invalid JSON: trailing characters"),
        ('{"Id":"a"', "Invalid JSON: EOF"),
        ("{'Id':'a'}", "Invalid JSON: key must be a string"),
        ("<Order/>", "Invalid JSON: expected value"),
        (b'{"Id":"\xff"}', "the body is not UTF-8 text: byte 0xff at position 7"),
        ('{"Id":"a"}'.encode("utf-16"), "the body is not UTF-8 text: byte 0xff at position 0"),
        ('{"Id":"a"}'.encode("utf-16-le"), "Invalid JSON"),
        ('{"Id":"\\ud800"}', "Invalid JSON"),
        ("[" * 100_000, "Invalid JSON: recursion limit exceeded"),
        ('{"Id":' * 100_000, "Invalid JSON: recursion limit exceeded"),
        ('{"Id":"a","Note":' + "[" * 100_000 + "]" * 100_000 + "}", "Invalid JSON: recursion limit exceeded"),
        ('{"Id":"a","Note":' + "9" * 5_000 + "}", "Invalid JSON: number out of range"),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_what_is_no_json_object_is_refused(body, words):
    found = parsed(Order, ['{"Id":"before"}', body, '{"Id":"after"}'])
    assert list(found.problems) == [1]
    assert found.problems[1].error_type == UNREADABLE_BODY
    assert words in found.problems[1].message


@pytest.mark.parametrize(
    ("body", "id_"),
    [
        ('\ufeff{"Id":"a"}', "a"),
        ('{"Id":"a","Id":"b"}', "b"),
        ('{"Id":"a","Lines":5,"Lines":[]}', "a"),
        ('{"Id":"a","Unknown":NaN}', "a"),
        ('{"Id":"a\\u0000"}', "a\0"),
        ('{"Id":"\\ud83d\\ude00"}', "😀"),
        ('{"Id":"a","Note":' + "[" * 150 + "]" * 150 + "}", "a"),
    ],
    ids=lambda part: repr(part)[:40],
)
def test_unusual_bodies_that_are_valid_are_accepted(body, id_):
    assert payload(Order, body)["Id"] == id_


def test_a_body_of_50_megabytes_is_a_body():
    text = "x" * 50_000_000
    found = parsed(Order, [f'{{"Id":"{text}"}}', '{"Id":"a"}', f'{{"Ib":"{text}"}}'])
    assert len(found.payload[0]["Id"].as_py()) == len(text)
    assert list(found.problems) == [2]


UNHELD = [
    (int, "9223372036854775808", "f: Python int too large"),
    (int, "-9223372036854775809", "f: Python int too large"),
    (list[dict[str, int]], '[{"a":1},{"b":100000000000000000000}]', "f.1.b: Python int too large"),
    (Decimal, "1e30", "f: Decimal type with precision"),
    (Decimal, "1e-19", "f: Rescaling Decimal value would cause data loss"),
    (Annotated[Decimal, Field(decimal_places=2)], '"1e37"', "f: "),
    (Annotated[Decimal, Field(allow_inf_nan=True)], "NaN", "f: The string 'NaN' is not a valid decimal128 number"),
    (dt.datetime, '"0001-01-01T00:00:00+05:00"', "f: Input should be in the years 1 to 9999 in UTC"),
    (list[dt.datetime], '["9999-12-31T23:00:00-05:00"]', "f.0: Input should be in the years 1 to 9999 in UTC"),
    (dt.timedelta, '"P999999999D"', "f: Timedelta too large"),
    (Annotated[str, AfterValidator(lambda value: value + "\ud800")], '"x"', "f: 'utf-8' codec can't encode"),
    (Annotated[int, AfterValidator(str)], "1", "f: Could not convert '1'"),
]


@pytest.mark.parametrize(("annotation", "text", "words"), UNHELD, ids=lambda part: str(part)[:40])
def test_a_value_that_spark_cannot_hold_fails_its_message_alone(annotation, text, words):
    schema = create_model("M", f=(annotation, None), at=int)
    bodies = [f'{{"at":{at}}}' for at in range(450)]
    bodies[223] = f'{{"at":223,"f":{text}}}'
    found = parsed(schema, bodies)
    assert list(found.problems) == [223]
    assert found.problems[223].error_type == UNREADABLE_BODY
    assert found.problems[223].message.startswith(words)
    good = [at for at in range(450) if at != 223]
    assert [found.payload[at]["at"].as_py() for at in good] == good


def problems(found):
    """What is wrong, without the stack traces."""
    return {at: (one.error_type, one.message) for at, one in found.problems.items()}


def test_a_validator_that_makes_a_required_value_null_fails_its_message_alone():
    schema = one_field(list[Annotated[int, AfterValidator(lambda value: value or None)]])
    found = parsed(schema, ['{"f":[1]}', '{"f":[1,0]}'])
    assert problems(found) == {1: (UNREADABLE_BODY, "f.1: Input should not be null")}


def test_a_validator_that_raises_fails_its_message_alone_with_its_exception():
    def check(value: int) -> int:
        if value == 3:
            raise KeyError("no such \ud800 rate")
        if value == 4:
            raise ValueError("four is refused")
        return 10 // value

    schema = one_field(Annotated[int, AfterValidator(check)])
    found = parsed(schema, [f'{{"f":{value}}}' for value in (1, 3, 0, 4, 2)])
    assert problems(found) == {
        1: ("KeyError", "'no such \\ud800 rate'"),
        2: ("ZeroDivisionError", "integer division or modulo by zero"),
        3: (UNREADABLE_BODY, "f: Value error, four is refused (given: 4)"),
    }
    assert [row["f"].as_py() for row in found.payload if row.is_valid] == [10, 5]


def test_an_exception_that_cannot_be_shown_fails_its_message_alone():
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    def refuse(value: int) -> int:
        raise Mute

    found = parsed(one_field(Annotated[int, AfterValidator(refuse)]), ['{"f":1}', "{}"])
    assert problems(found)[0] == ("Mute", "it cannot be shown: RuntimeError")
    assert found.problems[1].message == "f: Field required"


def test_a_computed_field_that_raises_fails_its_message_alone():
    class M(BaseModel):
        a: int

        @computed_field
        def share(self) -> int:
            return 10 // self.a

    found = parsed(M, ['{"a":1}', '{"a":0}'])
    assert list(found.problems) == [1]
    assert plain(found.payload[0]) == {"a": 1, "share": 10}
