"""Queue addresses: `table@[schema]@[catalog]` on SQL Server, `"schema"."table"` on PostgreSQL, a name on SQLite.

These are functions of values; no database is asked.
"""

from __future__ import annotations

from dataclasses import dataclass

from queue_pipeline.errors import AddressError


@dataclass(frozen=True, slots=True)
class QueueAddress:
    """The parts of an address as written; what is missing is filled in by an `AddressBook`."""

    table: str
    schema: str | None = None
    catalog: str | None = None


def bracket(name: str) -> str:
    """An identifier quoted for T-SQL."""
    return "[" + name.replace("]", "]]") + "]"


def unbracket(name: str) -> str:
    """The identifier inside brackets; anything not wholly in brackets is returned unchanged."""
    if len(name) >= 2 and name.startswith("[") and name.endswith("]"):
        return name[1:-1].replace("]]", "]")
    return name


def double_quote(name: str) -> str:
    """An identifier quoted for PostgreSQL and SQLite."""
    return '"' + name.replace('"', '""') + '"'


def undouble_quote(name: str) -> str:
    """The identifier inside double quotes; anything not wholly quoted is returned unchanged."""
    if len(name) >= 2 and name.startswith('"') and name.endswith('"'):
        return name[1:-1].replace('""', '"')
    return name


def check_name(name: str) -> None:
    """Refuse what no database can store as a name, or what would end a line of a script that a person runs."""
    if "\0" in name:
        raise AddressError(f"the name {name!r} holds a NUL character, which no database allows")
    if any(ord(character) < 32 or ord(character) == 127 for character in name):
        raise AddressError(f"the name {name!r} holds a line end or another control character; choose another name")
    if any(0xD800 <= ord(character) <= 0xDFFF for character in name):
        raise AddressError(f"the name {name!r} is not valid Unicode; type it in the encoding of your terminal")
    # SQLAlchemy finds values also inside the quotes of a name, and takes the statement up to the next bracket for one.
    if "%(" in name or "__[POSTCOMPILE_" in name:
        raise AddressError(
            f"the name {name!r} holds %( or __[POSTCOMPILE_, which is read as a value; choose another name"
        )


def parse_sqlserver(text: str) -> QueueAddress:
    """Read `table[@schema[@catalog]]`; the table part is never unquoted."""
    _require_text(text)
    table, _, rest = text.partition("@")
    schema, rest = _next_part(rest)
    catalog, _ = _next_part(rest)
    return sqlserver_address(_require_table(text, table), schema, catalog)


def sqlserver_address(table: str, schema: str | None, catalog: str | None) -> QueueAddress:
    """An address from parts that may be in brackets; a part that is blank is not there."""
    schema, catalog = (unbracket(part) if part else "" for part in (schema, catalog))
    return QueueAddress(table, schema if schema.strip() else None, catalog if catalog.strip() else None)


def format_sqlserver(address: QueueAddress) -> str:
    """Write an address of the SQL Server family, leaving out what it does not name."""
    if address.catalog is not None:
        return f"{address.table}@{bracket(address.schema or '')}@{bracket(address.catalog)}"
    return address.table if address.schema is None else f"{address.table}@{bracket(address.schema)}"


def parse_postgresql(text: str) -> QueueAddress:
    """Read `[schema.]table`, split at the first dot outside double quotes."""
    _require_text(text)
    quoted = False
    for position, character in enumerate(text):
        if character == '"':
            quoted = not quoted
        elif character == "." and not quoted:
            schema, table = undouble_quote(text[:position]), undouble_quote(text[position + 1 :])
            return QueueAddress(_require_table(text, table), schema or None)
    return QueueAddress(_require_table(text, undouble_quote(text)))


def format_postgresql(address: QueueAddress) -> str:
    """Write an address of the PostgreSQL family: quoted, schema first."""
    table = double_quote(address.table)
    return f"{double_quote(address.schema)}.{table}" if address.schema else table


def endpoint_of(address: str) -> str:
    """What an endpoint that receives from a queue is called: its table's name, without quotes, schema and catalog."""
    if '"' in address:
        return parse_postgresql(address).table
    return address.partition("@")[0] or address


def parse_sqlite(text: str) -> QueueAddress:
    """Read a table name; one wholly in double quotes means the same as on PostgreSQL."""
    _require_text(text)
    if len(text) >= 2 and text.startswith('"') and text.endswith('"'):
        inner = text[1:-1]
        if '"' in inner.replace('""', ""):
            raise AddressError(f"queue address {text} names a schema, and SQLite has none; name the table alone")
        return QueueAddress(_require_table(text, inner.replace('""', '"')))
    return QueueAddress(_require_table(text, text))


def format_sqlite(address: QueueAddress) -> str:
    """Write a table name, quoted only where reading it back would otherwise strip something."""
    name = address.table
    return double_quote(name) if len(name) >= 2 and name.startswith('"') and name.endswith('"') else name


def _next_part(rest: str) -> tuple[str, str]:
    """One part of a SQL Server address, and the text after its `@`.

    A bracketed part ends at the first `@` after an odd number of closing brackets, because an escaped one counts twice.
    The first character is never the end, as in the reference.
    """
    bracketed, closing, end = rest.startswith("["), 0, len(rest)
    for position, character in enumerate(rest[1:], start=1):
        if character == "@" and (not bracketed or closing % 2 == 1):
            end = position
            break
        closing += character == "]"
    return rest[:end], rest[end + 1 :]


def _require_text(text: str) -> None:
    if not text.strip():
        raise AddressError("a queue address is empty; give the name of a queue table")
    check_name(text)


def _require_table(text: str, table: str) -> str:
    if not table.strip():
        raise AddressError(f"queue address {text!r} names no table; write the table first")
    return table
