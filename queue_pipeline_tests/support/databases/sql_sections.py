"""The sections of `sql/`, filled with the worst of names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.command import Command
from queue_pipeline.transport.database.dialects.dialect import Dialect
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.statements import (
    Section,
    braces,
    sections,
    sql_folder,
)

PACKAGE = Path(__file__).parents[3] / "queue_pipeline"
SQLGLOT_NAMES = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}


# Legal on every database, and as bad as can be: ends every kind of quote and comment, and looks like a value.
TABLE = "o'r]d\"e;r--s /*?*/ :claim_id {queue} 😀 ]]--"
SCHEMA = "s'c]h\"e;m--a ? :owner 😀"
CATALOG = "c'a]t\"a;l--og ? :id 😀"
TABLE_BRACES = {
    "queue",
    "delayed",
    "claimed",
    "claims",
    "outbox",
    "pauses",
    "failures",
    "slots",
    "subscriptions",
    "sequences",
    "table",
    "replacement",
}
NAME_BRACES = {
    "account",
    "claimed_index",
    "claims_index",
    "due_index",
    "expires_index",
    "index",
    "key_index",
    "subqueue_index",
    "outbox_index",
    "row_version_index",
    "schema",
    "sequence",
    "id_sequence",
    "row_version_sequence",
}


# Columns that some tables of SQL Server have and some have not, its catalog, and the order of an NGinn queue.
OPTIONAL_BRACES = {"all_columns", "columns", "correlation_id", "reply_to_address", "sys"}


# Lists of quoted names that a statement on a user's own table is composed of.
LIST_BRACES = {"changes", "keys", "match"}
BROWSED = {"subqueue": "'I'", "rank": "row_version"}
"""What of the messages of an NGinn queue a browse reads, and in which order."""
KNOWN_BRACES = TABLE_BRACES | NAME_BRACES | OPTIONAL_BRACES | LIST_BRACES | {"order", *BROWSED}


# One name for one thing. Times are in milliseconds, but for `seconds` and `minutes`.
VALUES = {
    "address",
    "after",
    "generation",
    "body",
    "body_is_null",
    "by",
    "bytes",
    "claim_id",
    "delay",
    "endpoint",
    "error",
    "expired",
    "died",
    "first",
    "headers",
    "id",
    "keep",
    "key",
    "last",
    "lease",
    "lease_end",
    "limit",
    "lock",
    "message_type",
    "messages",
    "milliseconds",
    "minutes",
    "name",
    "new_claim_id",
    "new_owner",
    "offset",
    "owner",
    "group_number",
    "slot",
    "process",
    "proof",
    "publisher",
    "queue",
    "reason",
    "row",
    "row_version",
    "schema",
    "scope",
    "seconds",
    "sequence",
    "state",
    "subscriber",
    "task",
    "text",
    "topic",
    "with_body",
}


# What not every dialect has, and why.
ONLY_SQLSERVER = {
    "user_tables.merge_open": "the other two merge by the columns of an index",
    "user_tables.merge_fill": "the other two merge by the columns of an index",
    "user_tables.merge_close": "the other two merge by the columns of an index",
    "session.catalog": "addresses name the database there",
    "nservicebus/schema.create_queue_heap": "the other two know no heap",
    "audit.fix_row_version_index_beside": "an index is clustered or not there",
    "session.scope_check": "XACT_ABORT ends a transaction without the caller's knowledge",
    "session.scope_open": "XACT_ABORT ends a transaction without the caller's knowledge",
}
ONLY_POSTGRESQL = {
    "nginn/claim_messages.take": "the others note messages and move them in two statements",
    "nservicebus/queue.copy": "the others know no COPY",
    "outbox.copy": "the others know no COPY",
    "audit.sequence": "a sequence of 32 bits runs out",
    "audit.fix_sequence_type": "a sequence of 32 bits runs out",
    "audit.fix_dead_rows": "only there do dead rows stay until a vacuum",
    "session.encoding": "the others store every character in the columns of queues",
}
ONLY_SQLITE = {
    "nginn/claim_messages.extended": "its clock goes on between two statements",
    "nginn/claim_messages.lease_end": "its clock goes on between two statements",
    "nservicebus/claim_messages.take_delete": "it cannot insert what a DELETE returns",
    "nservicebus/queue.move_due_delete": "it cannot insert what a DELETE returns",
}
NOT_SQLITE = {
    "nginn/schema.grant": "it has no accounts",
    "schema.grant": "it has no accounts",
    "nservicebus/schema.grant": "it has no accounts",
    "schema.lock": "its write lock is enough",
    "audit.size": "free pages belong to the whole file",
    "audit.fix_page_bloat": "free pages belong to the whole file",
    "audit.fix_body_type": "it stores any type in any column",
    "audit.fix_expires_type": "it stores any type in any column",
    "audit.fix_headers_type": "it stores any type in any column",
    "audit.fix_id_type": "it stores any type in any column",
}
NOT_SQLSERVER = {
    "user_tables.key_index": "a merge works without one there",
    "nginn/bus.sequence_lock": "sequence_open locks there itself",
}
NOT_POSTGRESQL = {
    "nservicebus/claim_messages.drop_expired": "take drops expired messages there itself",
    "nginn/claim_messages.note": "take does both there",
    "nginn/claim_messages.move": "take does both there",
}


# What a dialect's own code runs, with values of its own, and why.
OWN_VALUES = {
    ("postgresql", "nservicebus/claim_messages.take"): "counts what may be on its way to another queue",
    ("sqlite", "nginn/claim_messages.extend"): "binds the end of the lease, which it asks for first",
}


every_dialect = pytest.mark.parametrize("dialect", DIALECTS.values(), ids=list(DIALECTS))


def _files(dialect: str) -> list[Path]:
    return sorted(Path(str(sql_folder() / dialect)).rglob("*.sql"))


def named(dialect: str) -> dict[str, Section]:
    return {section.name: section for section in sections(dialect)}


def short(name: str) -> str:
    return name.rpartition(".")[2]


def base(brace: str) -> str:
    """`queue` of `queue_text` and `queue_name`."""
    stem = re.sub("_(text|name)$", "", brace)
    return stem if stem in TABLE_BRACES else brace


def filled(dialect: Dialect, name: str, *, legacy: bool = True) -> Command:
    """The statement as the transport would send it for a queue of the worst name."""
    book = AddressBook(dialect, schema=SCHEMA, catalog=CATALOG)
    table = book.resolve(QueueAddress(TABLE))
    bases = {base(each) for each in braces(dialect.name, name)}
    # Once as a table of version 1 and once as one from which the old columns were dropped.
    columns = dialect.optional_columns(
        frozenset({"recoverable", "correlationid", "replytoaddress"} if legacy else ()),
        {"receive": "deleted", "take": "deleted", "browse": "q"}.get(short(name), "m"),
    )
    names = {each: table for each in bases & TABLE_BRACES} | {
        each: dialect.quote(TABLE) for each in bases & NAME_BRACES
    }
    if name.startswith("user_tables."):
        key, changed = dialect.quote("a"), dialect.quote("b")
        columns = {
            "columns": f"{key}, {changed}",
            "keys": key,
            "match": f"stored.{key} = new.{key}",
            "changes": dialect.change(changed, add=True),
        }
    order = ", ".join(map(dialect.quote, ("retry_time", "id")))
    return dialect.statement(name, **{"queue": table, **names, **columns, "order": order, **BROWSED})
