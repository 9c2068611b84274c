"""Failed messages on the way out: in tables, as a whole, as JSON, and the command that retries them."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from queue_pipeline.cli.failures import PROGRAM
from queue_pipeline.cli.output import duration, shortened, write_lines, write_table
from queue_pipeline.cli.rendering import body_document, write_message
from queue_pipeline.cli.session import DEFAULT_ERROR_QUEUE, Session
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE
from queue_pipeline.transport.failed.failed_message import bare_name, full_name
from queue_pipeline.transport.failed.failed_messages import Groups
from queue_pipeline.transport.failed.returns import Retried
from queue_pipeline.transport.inspection.browsed import BrowsedMessage
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.operations.slots import SlotHolder
from queue_pipeline.transport.texts import count_of

MOST_GROUPS = 10
_PLAIN_ID = re.compile(r"\w[\w.:-]*")
_FIELDS = (
    *("id", "row_version", "message_id", "message_type", "failed_queue", "exception_type", "exception_message"),
    *("body_size", "problem", "headers"),
)
_OPTIONS = {"message_type": "--type", "exception": "--exception", "failed_queue": "--from"}


def write_failed(messages: Sequence[BrowsedMessage]) -> None:
    """One line per message, with the beginning of its error."""
    columns = ("message", "type", "failed in", "when", "error")
    write_table(columns, [_row(message) for message in messages])


def write_groups(groups: Groups) -> None:
    """How many messages failed alike."""
    rows = [
        (
            f"{number:,}",
            shortened(_type(group.message_type)),
            shortened(group.exception_type),
            shortened(group.failed_queue),
        )
        for group, number in groups.counts[:MOST_GROUPS]
    ]
    write_lines("")
    write_table(("messages", "type", "exception", "failed in"), rows, figures=("messages",))
    if (more := len(groups.counts) - MOST_GROUPS) > 0:
        write_lines(f"and {count_of(more, 'more group')}")
    write_lines("")


def write_whole(message: BrowsedMessage) -> None:
    """All there is to know of one message; the stack trace last, where it does not hide the rest."""
    remarks = [f"failed {_when(message)}" if message.time_of_failure else ""]
    if message.problem is not None:
        remarks.append(f"headers cannot be read: {message.problem}: {message.raw_headers!r}")
    headers = {name: value for name, value in message.headers.items() if name != wire.EXCEPTION_STACK_TRACE}
    write_message(message.row_version, message.id, headers, message.body, *remarks, full=bool(headers))
    trace = message.headers.get(wire.EXCEPTION_STACK_TRACE)
    if trace:
        write_lines("stack trace:", trace, "")


def write_retried(result: Retried, error_queue: str) -> None:
    """Where messages went, and why some of them stayed."""
    if not result.done:
        write_lines(f"none of these messages is in {error_queue}")
    if result.queues:
        went = [(queue, f"{number:,}") for queue, number in result.queues.items()]
        write_table(("queue", "returned"), went, figures=("returned",))
    if result.held:
        write_lines(f"skipped {count_of(result.held, 'message')} of {error_queue} that others hold or took")
    if result.skipped:
        stayed = [(each.message_id, shortened(each.failed_queue), each.reason) for each in result.named]
        write_table(("stayed", "failed in", "why"), stayed)
        if (more := result.skipped - len(result.named)) > 0:
            write_lines(f"and {more:,} more")


def write_takers(receivers: Sequence[SlotHolder]) -> None:
    """Which runs are at work where messages went, and whether they may take them; a run of old code does not."""
    if receivers:
        rows = [(each.owner, each.queue, duration(each.since_seconds), each.may_take_more) for each in receivers]
        write_lines("")
        write_table(("at work", "queue", "for", "may take them"), rows, figures=("for",))


def document(message: BrowsedMessage, *, with_body: bool = False) -> dict[str, Any]:
    """A message as JSON."""
    document = {name: getattr(message, name) for name in _FIELDS}
    moment = message.time_of_failure
    document |= {
        "time_of_failure": None if moment is None else moment.isoformat(),
        "processing_endpoint": message.headers.get(wire.PROCESSING_ENDPOINT),
        "raw_headers": None if message.problem is None else message.raw_headers,
    }
    return document | body_document(message.body) if with_body else document


def retry_command(session: Session, ids: Sequence[str] = (), **chosen: str | None) -> str:
    """What to type to retry messages that were chosen in this way; a choice of none means all."""
    program = PROGRAM
    if session.database is not None:
        # A password is never shown: its user has the setting in the environment, or types it again.
        typed = f'"${ENVIRONMENT_VARIABLE}"' if session.secrets() else shlex.quote(session.database)
        program += f" --database {typed}"
    given = {"--schema": session.schema, "--catalog": session.catalog}
    if session.error_queue != DEFAULT_ERROR_QUEUE:
        given["--error-queue"] = session.error_queue
    words = [word for option, value in given.items() if value for word in (option, value)]
    narrow = [
        *ids,
        *(word for name, option in _OPTIONS.items() if (value := chosen.get(name)) for word in (option, value)),
    ]
    return f"{program} {shlex.join([*words, 'errors', 'retry', *(narrow or ['--all'])])}"


def handy_id(message: BrowsedMessage) -> str:
    """The id to name a message by in a command: its own, unless that could be taken for something else."""
    return message.message_id if _PLAIN_ID.fullmatch(message.message_id) else message.id


def _row(message: BrowsedMessage) -> tuple[object, ...]:
    if message.problem is not None:
        error = f"headers cannot be read: {message.problem}"
    else:
        known = (message.exception_type and bare_name(message.exception_type), message.exception_message)
        error = ": ".join(part for part in known if part)
    return (
        message.message_id,
        shortened(_type(message.message_type)),
        shortened(message.failed_queue),
        _when(message),
        shortened(error or None),
    )


def _type(message_type: str | None) -> str | None:
    return None if message_type is None else full_name(message_type)


def _when(message: BrowsedMessage) -> str | None:
    moment = message.time_of_failure
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M:%S} UTC"
