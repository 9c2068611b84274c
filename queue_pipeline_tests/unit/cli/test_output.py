"""What is printed: legible, harmless to a terminal, and without secrets."""

from __future__ import annotations

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from queue_pipeline.cli.failures import explain, redact
from queue_pipeline.cli.output import duration, size_of, visible
from queue_pipeline.cli.rendering import body_document, body_text
from queue_pipeline.errors import ClaimLostError, QueueNotFoundError
from queue_pipeline.transport.texts import count_of


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b"", ""),
        ("Zoë 🎈\r\n\t<xml/>".encode(), "Zoë 🎈\r\n\t<xml/>"),
        (b"\xef\xbb\xbf{}", "\ufeff{}"),
        ("👩\u200d🚀".encode(), "👩\u200d🚀"),
        (b"\xff\xfe", None),
        ("text".encode("utf-16-le"), None),
        (b"\x1b[2J", None),
        ("\x85".encode(), None),
    ],
)
def test_a_body_is_text_when_it_is_utf8_without_control_characters(body: bytes, text: str | None) -> None:
    assert body_text(body) == text


def test_a_body_that_is_no_text_is_printed_in_base64() -> None:
    assert body_document(b"\x00\x01\xff") == {"size": 3, "body_base64": "AAH/"}
    assert body_document("ë".encode()) == {"size": 2, "body": "ë"}


@given(st.text(st.characters()))
def test_visible_text_has_no_characters_that_control_a_terminal(text: str) -> None:
    shown = visible(text)
    assert all(character in "\n\t" or ord(character) >= 0x20 for character in shown)
    assert not any(0x7F <= ord(character) <= 0x9F for character in shown)
    shown.encode()


def test_visible_text_keeps_what_is_harmless() -> None:
    assert visible("Zoë\t[bold]\n🎈\r\n") == "Zoë\t[bold]\n🎈\n"
    assert visible("\x1b[2J\ud800\u202e\r") == "\\x1b[2J\\ud800\\u202e\\x0d"


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(None, None), (0, "0.0 s"), (59.94, "59.9 s"), (90, "1.5 min"), (-7200, "-2.0 h"), (259200, "3.0 d")],
)
def test_durations_are_printed_in_readable_units(seconds: float | None, text: str | None) -> None:
    assert duration(seconds) == text


def test_sizes_and_counts_are_printed_in_readable_units() -> None:
    assert [size_of(number) for number in (0, 1, 2048, 3 << 20)] == [
        "0 bytes",
        "1 byte",
        "2.0 KiB",
        "3.0 MiB",
    ]
    assert [count_of(number, "message") for number in (1, 2000)] == ["1 message", "2,000 messages"]


@pytest.mark.parametrize(
    "text",
    [
        "no such command 'postgresql://user:s3cret@host/db'",
        "mssql://user:a:s3cret@with@signs@host:1433/db",
        "DRIVER={x};PWD=s3cret;SERVER=y",
        "DRIVER={x};Pwd={a;s3cret}}more};SERVER=y",
        "password = s3cret",
        "the driver said s3cret",
    ],
)
def test_passwords_are_left_out(text: str) -> None:
    redacted = redact(text, ("s3cret",) if "driver said" in text else ())
    assert "s3cret" not in redacted
    assert "***" in redacted


def test_a_very_short_password_does_not_make_every_word_illegible() -> None:
    assert redact("open the pipe with p, not with pp", ("p",)) == "open the pipe with ***, not with pp"


def test_advice_keeps_its_placeholders() -> None:
    advice = "use postgresql://user:password@host:port/db"
    assert redact(advice) == advice


def test_errors_have_messages_and_exit_codes() -> None:
    error = QueueNotFoundError("orders")
    error.add_note("while testing")
    message, code = explain(error)
    assert message.startswith("queue orders does not exist") and message.endswith("; while testing")
    assert code == 3
    assert explain(ClaimLostError("gone")) == ("gone", 6)
    assert explain(KeyboardInterrupt())[1] == explain(click.Abort())[1] == 130
    assert explain(FileNotFoundError(2, "No such file", "x.jsonl")) == ("x.jsonl: No such file", 74)
    assert explain(ZeroDivisionError("by zero"))[1] == 70
