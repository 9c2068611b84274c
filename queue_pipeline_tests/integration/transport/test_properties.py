"""Nothing is lost and nothing is altered, whatever queues are called and whatever messages hold."""

import contextlib
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

from queue_pipeline.errors import AddressError, QueueNotFoundError
from queue_pipeline.transport import OutgoingMessage, QueueAddress, QueueTable, QueueTransport, TransactionMode
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.backends import Backend, run_sql

# Every example works on tables of its own or leaves them as it found them, so that they can share a schema.
examples = settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
few_examples = settings(examples, max_examples=15)

# --- names -------------------------------------------------------------------------------------------------

HOSTILE = [
    *"\"'[].;?%\\{}()<>,:$&#@`~!|^*+-=/ 😀éйA",
    "]]",
    '""',
    "''",
    "\\'",
    '\\"',
    "??",
    "%s",
    "%%",
    "--",
    "/*",
    "*/",
    "{queue}",
    "{fn now()}",
    "{d '2020-01-01'}",
    "$1",
    "$$",
    ":name",
    "N'",
    "DROP TABLE",
    "a\u0301",
    "\u200b",
    "\ufeff",
]
SQL = ["x'; DROP TABLE error; --", 'x"; DROP TABLE error; --', "x]; DROP TABLE error; --", "(SELECT 1)", "error] --"]
names = st.lists(
    st.sampled_from(HOSTILE) | st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12
).map("".join) | st.sampled_from(SQL)


def legal(backend: Backend, name: str) -> str:
    """What is left of a name that this database, as a database, can give to a table."""
    if backend.name == "sqlserver":
        # An address of this family ends its table at the first "@"; "#" in front makes a table temporary.
        name = name.replace("@", "").lstrip("#")
    if backend.is_babelfish:
        # It does not understand an escaped bracket ("]]" is a syntax error there).
        name = name.replace("]", "")
    longest = {"postgresql": 47, "sqlserver": 119}.get(backend.name, 1_000)
    name = name.encode()[:longest].decode(errors="ignore")
    assume(name.strip())
    assume(name.lower() not in ("error", "queueclaims", "queueoutbox"))
    assume(not name.lower().startswith("sqlite_"))
    return name


@contextlib.contextmanager
def installed(backend: Backend, transport: QueueTransport, name: str) -> Iterator[QueueTable]:
    """A queue of that name, and no trace of it afterwards."""
    queue = transport.resolve(QueueAddress(name))
    try:
        transport.install(queue, plain_queues=[])
        yield queue
    finally:
        dialect = transport.database.dialect
        with transport.database.transaction() as transaction:
            for suffix in ("", ".Delayed", ".Claimed"):
                table = dialect.qualify(QueueAddress(name + suffix, queue.schema))
                exists = transport.resolve(QueueAddress(name + suffix, queue.schema, queue.catalog))
                if transaction.rows(dialect.statement("schema.exists", queue=exists)):
                    run_sql(transaction.connection, f"DROP TABLE {table}")


@examples
@given(name=names)
@example("my.table")
@example('say "no"')
@example('"quoted"')
@example("[brackets]")
@example("closing]]]")
@example("it's")
@example("semi;colon")
@example("what? why?")
@example("100% %s %%")
@example("back\\slash\\'?")
@example("{braces} {queue} {0}")
@example("comment -- /* */")
@example("emoji 😀 and é")
@example("'; DROP TABLE error; --")
@example("] DROP TABLE error --")
@example("a@b")
@example(" space ")
def test_a_queue_may_have_any_name(backend, transport, name):
    name = legal(backend, name)
    with installed(backend, transport, name) as queue:
        assert queue.table == name
        address = queue.canonical
        assert transport.resolve(address) == queue
        transport.send(address, [OutgoingMessage(b"%d" % n) for n in range(4)])
        assert transport.peek(address) == 4
        assert [shown.body for shown in transport.show(address)] == [b"0", b"1", b"2", b"3"]
        with transport.receive(address, 1) as batch:
            assert [message.body for message in batch] == [b"0"]
        claim = transport.claims.claim(transport.resolve(address), "tester", 2)
        assert claim is not None and claim.messages == 2 and claim.queue == address
        (records,) = transport.claim_reader.read(claim)
        assert records.column("body").to_pylist() == [b"1", b"2"]
        (status,) = transport.status(address)
        assert (status.queue, status.pending, status.claimed) == (address, 1, 2)
        # Some servers tell names in lower case.
        assert address.lower() in [listed.queue.lower() for listed in transport.status()]
        transport.claims.complete(Completion(claim, read=None))
        with transport.receive(address) as batch:
            assert [message.body for message in batch] == [b"3"]
        assert transport.peek(address) == 0
    assert transport.peek("error") == 0, "the error queue was touched"


@few_examples
@given(name=names)
@example("'; DROP TABLE error; --")
@example('"; DROP TABLE error; --')
@example("] (Id) VALUES (1); DROP TABLE error; --")
@example("orders; --")
def test_a_name_that_was_never_installed_is_a_queue_that_does_not_exist(backend, transport, name):
    """AS-09: whatever is in it, it is a name."""
    name = legal(backend, name)
    address = transport.resolve(QueueAddress("no " + name)).canonical
    transport.send("orders", OutgoingMessage(b"kept"))
    with pytest.raises(QueueNotFoundError) as caught:
        transport.send(address, OutgoingMessage(b"lost"))
    assert caught.value.queue == address
    with pytest.raises(QueueNotFoundError):
        transport.peek(address)
    with transport.receive("orders") as batch:
        assert [message.body for message in batch] == [b"kept"]
    assert transport.peek("error") == 0


@pytest.mark.parametrize("name", ["a;\nb", "a\nVALUES\nb", "a\nGO\nb", "a\r\nb", "tab\there"])
def test_a_name_with_a_line_end_is_refused_or_works(backend, transport, name):
    try:
        queue = transport.resolve(QueueAddress(name))
        transport.book.check_length(queue)
    except AddressError:
        return
    with installed(backend, transport, name):
        transport.send(queue, [OutgoingMessage(b"%d" % n) for n in range(3)])
        with transport.receive(queue) as batch:
            assert [message.body for message in batch] == [b"0", b"1", b"2"]


SHAPES = {
    "sqlite": "Id TEXT, Expires TEXT, Headers TEXT, Body BLOB, RowVersion INTEGER",
    "postgresql": "id uuid, expires timestamp, headers text, body bytea, seq bigint",
    "sqlserver": "Id uniqueidentifier, Expires datetime, Headers nvarchar(max), Body varbinary(max), RowVersion bigint",
}


@pytest.mark.parametrize("name", ["at@sign", "tab\tinside"])
def test_a_table_that_no_address_can_name_does_not_hide_the_other_queues(backend, transport, name):
    """It may have the shape of a queue and belong to another program."""
    dialect = transport.database.dialect
    table = dialect.qualify(QueueAddress(name, transport.resolve("orders").schema))
    backend.sql(transport, f"CREATE TABLE {table} ({SHAPES[backend.name]})")
    try:
        assert transport.resolve("orders").canonical.lower() in [each.queue.lower() for each in transport.status()]
    finally:
        backend.sql(transport, f"DROP TABLE {table}")


@pytest.mark.parametrize("name", ["#orders", "##orders"])
def test_a_temporary_table_is_no_queue(sqlserver, name):
    transport = sqlserver.transport()
    with pytest.raises(AddressError):
        transport.install(name)


# --- messages ----------------------------------------------------------------------------------------------

header_texts = st.text(max_size=20) | st.sampled_from(
    ["", "\x00", "\r\n", "\u2028", "\ufeff", "\uffff", "🚀", "\ud83d", "\udca9", "?", "{}", "%s"]
)
headers = st.dictionaries(header_texts, header_texts, max_size=4)
bodies = st.binary(max_size=300) | st.sampled_from([b"", b"\x00", b"\xff" * 5_000, b"?'\"\\%{}", bytes(range(256))])


def unambiguous(sent: dict[str, str]) -> bool:
    """Two halves of a surrogate pair side by side are one character for every program except Python."""
    return all(
        text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass") == text
        for pair in sent.items()
        for text in pair
    )


def claimed_rows(transport: QueueTransport, messages: int) -> list[dict[str, Any]]:
    """Everything in the queue as Arrow gives it, through a claim that is completed."""
    claim = transport.claims.claim(transport.resolve("orders"), "tester", messages)
    assert claim is not None
    rows = [row for batch in transport.claim_reader.read(claim, max_messages=2) for row in batch.to_pylist()]
    transport.claims.complete(Completion(claim, read=None))
    return rows


@examples
@given(st.lists(st.tuples(headers.filter(unambiguous), bodies), min_size=1, max_size=4))
@example([({"BMP Ωжع": "漢字", "astral 🚀": "😀 𐍈"}, b"")])
@example([({"\x00\x01\x1f\x7f": "\r\n\t\x0b"}, b"\x00")])
@example([({"\ud83d": "half \ude80 of a pair"}, b"x"), ({}, b"\r\n"), ({"": ""}, b"y")])
@example([({"a": "/" * 5_000}, b"z" * 300_000)])
def test_any_message_arrives_as_it_was_sent(transport, sent):
    """TT-15: any header name, any value, any body, received one way and claimed the other."""
    wanted = [({**headers, wire.MESSAGE_ID: str(n)}, body) for n, (headers, body) in enumerate(sent)]
    outgoing = [OutgoingMessage(body, headers) for headers, body in wanted]
    assert transport.send("orders", outgoing) == len(outgoing)
    with transport.receive("orders") as batch:
        assert [(message.headers, message.body) for message in batch] == wanted
        ids = [message.id for message in batch]
    assert len(set(ids)) == len(ids) and all(str(uuid.UUID(each)) == each for each in ids)

    transport.send("orders", outgoing)
    rows = claimed_rows(transport, len(outgoing))
    assert [(wire.decode(row["headers"]), row["body"]) for row in rows] == wanted
    assert [row["headers"] for row in rows] == [wire.encode(headers) for headers, _ in wanted]
    assert [row["row_version"] for row in rows] == sorted(row["row_version"] for row in rows)
    assert transport.peek("orders") == 0


def test_a_claimed_row_has_the_same_id_as_a_received_one(transport):
    """A GUID in lower case, however the driver gives it."""
    transport.send("orders", OutgoingMessage(b"x"))
    (shown,) = transport.show("orders")
    (row,) = claimed_rows(transport, 1)
    assert row["id"] == shown.id == str(uuid.UUID(shown.id))


INSERTS = {
    "sqlite": "INSERT INTO {queue} (Id, Headers, Body) VALUES (?, ?, {body})",
    "postgresql": "INSERT INTO {queue} (id, headers, body) VALUES (CAST(? AS uuid), ?, {body})",
    "sqlserver": "INSERT INTO {queue} (Id, Recoverable, Headers, Body)"
    " VALUES (CAST(? AS uniqueidentifier), 1, ?, {body})",
}


def insert_raw(backend: Backend, transport: QueueTransport, header_text: str, body: bytes | None) -> str:
    """A row as some other program may write it."""
    row_id = str(uuid.uuid4())
    statement = INSERTS[backend.name].format(
        queue=transport.resolve("orders").qualified, body="NULL" if body is None else "?"
    )
    backend.sql(transport, statement, (row_id, header_text, *(() if body is None else (body,))))
    return row_id


@pytest.mark.parametrize("mode", list(TransactionMode))
def test_a_body_that_is_null_is_read_as_an_empty_one(backend, transport, mode):
    row_id = insert_raw(backend, transport, "{}", None)
    (shown,) = transport.show("orders")
    assert shown.body == b""
    with transport.receive("orders", mode=mode) as batch:
        assert [(message.id, message.body) for message in batch] == [(row_id, b"")]


def test_a_body_that_is_null_is_claimed_as_an_empty_one(backend, transport):
    insert_raw(backend, transport, "{}", None)
    transport.send("orders", OutgoingMessage(b""))
    claim = transport.claims.claim(transport.resolve("orders"), "tester", 10)
    assert claim is not None
    messages, poison, _ = transport.claims.messages(claim)
    assert ([message.body for message in messages], poison) == ([b"", b""], [])
    (records,) = transport.claim_reader.read(claim)
    assert [body or b"" for body in records.column("body").to_pylist()] == [b"", b""]


# NUL cannot stand in a text of PostgreSQL, and half a surrogate pair in no text at all.
stored_texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40)


def is_poison(text: str) -> bool:
    try:
        wire.decode(text)
    except ValueError:
        return True
    return False


@examples
@given(text=stored_texts.filter(is_poison), body=st.none() | bodies, claimed=st.booleans())
@example("not json", b"", False)
@example("null", None, False)
@example("null", None, True)
@example('{"a":\r\n\t1,\n"😀":"\u2028"}', b"\x00\xff", False)
@example('{"a":\r\n\t1,\n"😀":"\u2028"}', b"\x00\xff", True)
@example("it's \\ ? % {queue}", b"?", False)
@example(" ", b"", True)
def test_headers_that_cannot_be_read_go_to_the_error_queue_unaltered(backend, transport, text, body, claimed):
    row_id = insert_raw(backend, transport, text, body)
    if claimed:
        claim = transport.claims.claim(transport.resolve("orders"), "tester", 10)
        assert claim is not None
        messages, poison, _ = transport.claims.messages(claim)
        assert messages == []
        assert transport.claims.dead_letter(claim, [row_version for row_version, _ in poison]) is None
    else:
        with transport.receive("orders") as batch:
            assert (len(batch), batch.poisoned) == (0, 1)
    error = transport.resolve("error").qualified
    ((found_id, found_text, found_body),) = backend.sql(transport, f"SELECT Id, Headers, Body FROM {error}")
    backend.sql(transport, f"DELETE FROM {error}")
    assert str(found_id).lower() == row_id
    assert found_text == text
    assert (None if found_body is None else bytes(found_body)) == body
    assert transport.peek("orders") == 0


@examples
@given(text=stored_texts)
@example('{ "a" : "b" }\r\n')
@example('{"a":"b","a":"c"}')
@example("{}")
@example("")
def test_headers_of_any_spelling_are_read_or_poison_and_never_lost(backend, transport, text):
    row_id = insert_raw(backend, transport, text, b"body")
    (shown,) = transport.show("orders")
    assert (shown.id, shown.raw_headers, shown.body) == (row_id, text, b"body")
    if is_poison(text):
        assert shown.problem is not None
        with transport.receive("orders") as batch:
            assert batch.poisoned == 1
        backend.sql(transport, f"DELETE FROM {transport.resolve('error').qualified}")
    else:
        with transport.receive("orders") as batch:
            (message,) = batch
        assert message.headers == {wire.MESSAGE_ID: row_id, **wire.decode(text)} == shown.headers
    assert transport.peek("orders") == 0


@pytest.mark.parametrize("mode", [mode for mode in TransactionMode if mode is not TransactionMode.UNRELIABLE])
def test_what_a_failed_attempt_did_to_the_headers_is_gone_at_the_next(transport, mode):
    """TT-12: the row is read again as it was stored."""
    sent = {wire.MESSAGE_ID: "1", "kept": "as it was"}
    transport.send("orders", OutgoingMessage(b"body", sent))
    with pytest.raises(ZeroDivisionError), transport.receive("orders", mode=mode) as batch:
        (message,) = batch
        message.headers["kept"] = "changed"
        message.headers["added"] = "too"
        raise ZeroDivisionError
    with transport.receive("orders", mode=mode) as batch:
        assert [message.headers for message in batch] == [sent]
