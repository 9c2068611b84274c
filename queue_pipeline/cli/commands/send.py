"""`send` and `publish`: one message, many alike, a file of them, or an event."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import IO, Any

import click
from pydantic import ValidationError

from queue_pipeline.cli.bulk import check_lines, good_messages, rewindable, send_all
from queue_pipeline.cli.jsonl import MessageLine, reason
from queue_pipeline.cli.output import answer
from queue_pipeline.cli.parameters import DELAY, TIME_TO_LIVE, Header, Text, number, options, queue_argument
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, with_session
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.event import Event
from queue_pipeline.transport.messages.message import OutgoingMessage
from queue_pipeline.transport.texts import count_of


def _by_name(context: click.Context, option: click.Parameter, headers: Sequence[tuple[str, str]]) -> dict[str, str]:
    """Headers that were typed; a header that is given twice is refused."""
    named = dict(headers)
    if len(named) < len(headers):
        twice = next(name for name, number in Counter(name for name, _ in headers).items() if number > 1)
        raise click.UsageError(f"header {twice} is given more than once")
    return named


body_options = options(
    click.option("--body", metavar="TEXT", help="The body."),
    click.option("--body-file", type=click.File("rb"), metavar="FILE|-", help="The body, byte for byte."),
    click.option(
        "--header",
        "headers",
        type=Header(),
        multiple=True,
        callback=_by_name,
        metavar="NAME=VALUE",
        help="A header; repeatable.",
    ),
)
"""The body and the headers of a message that is typed."""
type_option = click.option(
    "--type", "message_type", type=Text(), metavar="NAME", help="The type (EnclosedMessageTypes)."
)
ttl_option = click.option(
    "--ttl", type=TIME_TO_LIVE, metavar="SECONDS", help="Discard after this time; at most 24 days."
)
content_type_option = click.option("--content-type", type=Text(), metavar="TYPE", help="Default: application/json.")


@click.command()
@queue_argument
@body_options
@click.option("--jsonl", type=click.File("rb"), metavar="FILE|-", help="Send the messages of a file, one per line.")
@click.option("--skip-bad", is_flag=True, help="With --jsonl: skip lines that are not valid messages.")
@number("--count", help="Send N messages with this body.")
@type_option
@ttl_option
@click.option("--delay", type=DELAY, metavar="SECONDS", help="Deliver after this time.")
@click.option("--reply-to", type=Text(), metavar="QUEUE", help="The queue that replies go to.")
@content_type_option
@with_session
def send(
    session: Session,
    /,
    queue: str,
    body: str | None,
    body_file: IO[bytes] | None,
    headers: dict[str, str],
    jsonl: IO[bytes] | None,
    skip_bad: bool,
    count: int | None,
    message_type: str | None,
    **fields: Any,
) -> None:
    """Send messages to a queue, all of them or none.

    A line of a JSONL file is an object with the field body (a string is sent unchanged, anything else as compact JSON)
    or body_base64, and optionally headers, type, content_type, reply_to, message_id, ttl and delay. If a line is
    invalid, nothing of the file is sent, unless --skip-bad is given: then the bad lines are reported on stderr, and
    the exit code is 0 if at least one message was sent.
    """
    named = {name: value for name, value in {"type": message_type, **fields}.items() if value is not None}
    if jsonl is not None:
        others = {"body": body, "body_file": body_file, "count": count, "header": headers or None, **named}
        given = [f"--{name.replace('_', '-')}" for name, value in others.items() if value is not None]
        if given:
            raise click.UsageError(f"--jsonl takes all of this from its lines; leave out {', '.join(given)}")
        _send_file(session, queue, jsonl, skip_bad)
        return
    if skip_bad:
        raise click.UsageError("--skip-bad is about the lines of --jsonl, which is not given")
    content = typed_body(body, body_file)
    if content is None:
        raise click.UsageError("nothing to send; give --body, --body-file or --jsonl")
    _send_alike(session, queue, content, count or 1, {**named, "headers": headers})


def typed_body(body: str | None, body_file: IO[bytes] | None) -> bytes | None:
    """The body that was typed, or that of a file; None if there is neither."""
    if body is not None and body_file is not None:
        raise click.UsageError("--body and --body-file are both given; give one")
    if body_file is not None:
        return body_file.read()
    # Bytes that are not valid in the terminal's encoding arrive escaped, and are sent as they were typed.
    return body.encode("utf-8", "surrogateescape") if body is not None else None


def required_body(verb: str, body: str | None, body_file: IO[bytes] | None) -> bytes:
    """The same for a command that cannot do without."""
    content = typed_body(body, body_file)
    if content is None:
        raise click.UsageError(f"nothing to {verb}; give --body or --body-file")
    return content


def _send_alike(session: Session, queue: str, body: bytes, count: int, fields: dict[str, Any]) -> None:
    """Send messages that differ in nothing but their ids."""
    made = _messages(body, fields)
    first = next(made)
    messages = itertools.chain([first], itertools.islice(made, count - 1))
    with session.transport() as transport, progress(session, "sending", count) as on_progress:
        table = transport.resolve(queue)
        sent = send_all(transport, table, messages, on_progress)
    document: dict[str, Any] = {"queue": table.canonical, "sent": sent}
    what = count_of(sent, "message")
    if count == 1:
        document["message_id"] = first.headers[wire.MESSAGE_ID]
        what = f"message {document['message_id']}"
    answer(session, document, f"sent {what} to {table}")


def _send_file(session: Session, queue: str, file: IO[bytes], skip_bad: bool) -> None:
    """Check the whole file, then send it."""
    name = "standard input" if getattr(file, "name", "<stdin>") == "<stdin>" else file.name
    with rewindable(file) as lines:
        with progress(session, "checking") as on_progress:
            good, bad = check_lines(lines, name, on_progress, skip_bad=skip_bad)
        with session.transport() as transport, progress(session, "sending", good) as on_progress:
            table = transport.resolve(queue)
            sent = send_all(transport, table, good_messages(lines, name, skip_bad=skip_bad), on_progress)
    skipped = f"; skipped {count_of(bad, 'bad line')}" if bad else ""
    document = {"queue": table.canonical, "sent": sent, "skipped": bad}
    answer(session, document, f"sent {count_of(sent, 'message')} to {table}{skipped}")


def _messages(body: bytes, fields: dict[str, Any]) -> Iterator[OutgoingMessage]:
    """Copies of a body without end, each with an id of its own."""
    while True:
        yield _message(body=body, **fields)


def _message(**fields: Any) -> OutgoingMessage:
    try:
        return MessageLine(**fields).message()
    except ValidationError as error:
        raise click.UsageError(reason(error)) from None


@click.command()
@click.argument("event", type=Text(), metavar="EVENT")
@body_options
@click.option(
    "--parent", "parents", type=Text(), multiple=True, metavar="NAME", help="A base class or interface; repeatable."
)
@click.option("--interface", is_flag=True, help="EVENT is an interface, so it has no base class System.Object.")
@ttl_option
@content_type_option
@with_session
def publish(
    session: Session,
    /,
    event: str,
    body: str | None,
    body_file: IO[bytes] | None,
    headers: dict[str, str],
    parents: tuple[str, ...],
    interface: bool,
    **fields: Any,
) -> None:
    """Publish an event of the .NET type EVENT, a copy for each subscriber, all of them or none.

    Its base classes and interfaces are known to .NET only: name those that may have subscribers.
    """
    content = required_body("publish", body, body_file)
    named = {name: value for name, value in fields.items() if value is not None}
    message = _message(body=content, headers=headers, **named)
    declared = Event(event, parents, interface=interface)
    with session.transport() as transport:
        copies = transport.publish(declared, message)
    identity = message.headers[wire.MESSAGE_ID]
    document = {"event": declared.name, "message_id": identity, "copies": copies}
    answer(session, document, f"published {declared.name} as message {identity} to {count_of(copies, 'subscriber')}")
