"""Conditions in a statement: names of its own columns, values bound, and T-SQL that a parser reads."""

import re

import pytest
import sqlglot
from sqlglot import exp

from queue_pipeline.transport.addresses.queues import AddressBook
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.statements import value_names
from queue_pipeline.transport.inspection.conditions import (
    NGINN_COLUMNS,
    NSERVICEBUS_COLUMNS,
    Condition,
    Kind,
    with_conditions,
)
from queue_pipeline_tests.support.databases.sql_sections import BROWSED

READERS = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}
LAYOUTS = {"nservicebus": NSERVICEBUS_COLUMNS, "nginn": NGINN_COLUMNS}
VALUES = {Kind.NUMBER: 1, Kind.FLAG: 1, Kind.MOMENT: 1_000, Kind.GUID: "ab", Kind.TEXT: "x'; DROP TABLE error; --"}


def every_condition(columns):
    for name, column in columns.items():
        value = VALUES[column.kind]
        yield Condition(name, "IN", (value, value))
        yield Condition(name, "=", (value,), negated=True)
        yield from (Condition(name, "IS NULL"), Condition(name, "IS NOT NULL", negated=True))
        if column.kind not in (Kind.GUID, Kind.TEXT):
            yield from (Condition(name, sign, (value,)) for sign in ("<", "<=", ">", ">="))
        if column.kind is Kind.GUID:
            yield Condition(name, "LIKE", ("ab%",))


def browse(name, layout, conditions, table="orders"):
    """The statement of a dialect with conditions, and their values."""
    dialect = DIALECTS[name]
    columns = dialect.optional_columns(frozenset({"correlationid", "replytoaddress"}), "q")
    queue = AddressBook(dialect).resolve(table)
    command = dialect.statement(f"{layout}/queue.browse", queue=queue, **columns, **BROWSED)
    return with_conditions(command, conditions, LAYOUTS[layout], dialect)


def added(name, *conditions):
    """What conditions add to the statement for a queue of NServiceBus."""
    plain, _ = browse(name, "nservicebus", [])
    command, values = browse(name, "nservicebus", conditions)
    head, end, tail = plain.text.rpartition("\nORDER BY")
    assert command.text.startswith(head) and command.text.endswith(end + tail)
    return command.text[len(head) : -len(end + tail)].strip(), dict(values)


@pytest.mark.parametrize("name", DIALECTS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_a_statement_with_every_condition_is_read_by_a_parser_and_uses_columns_that_it_has(name, layout):
    conditions = list(every_condition(LAYOUTS[layout]))
    command, values = browse(name, layout, conditions, "o'r]d\"ers")
    assert value_names(command.text) == {"after", "limit", "with_body", *values}
    assert "DROP TABLE" not in command.text
    *_, tree = sqlglot.parse(command.script, READERS[name])
    inner = tree.find(exp.Subquery)
    assert inner.alias == "m"
    there = {one.lower() for one in inner.this.named_selects}
    used = {column.name.lower() for column in tree.find_all(exp.Column) if column.table == "m"}
    assert used - there == set()
    assert {one.column for one in conditions} <= used
    assert not tree.find(exp.Command)


@pytest.mark.parametrize(
    ("name", "bound"),
    [
        ("sqlserver", "CAST(:value_0 AS uniqueidentifier)"),
        ("postgresql", "CAST(:value_0 AS uuid)"),
        ("sqlite", ":value_0"),
    ],
)
def test_a_guid_is_compared_in_the_type_of_its_column_so_that_an_index_is_used(name, bound):
    assert added(name, Condition("id", "=", ("ab",))) == (f"AND m.id = {bound}", {"value_0": "ab"})


def test_no_condition_adds_nothing():
    assert added("sqlserver") == ("", {})


def test_values_of_several_conditions_have_names_of_their_own():
    conditions = [Condition("row_version", "IN", (1, 2)), Condition("expired", "=", (0,), negated=True)]
    text, values = added("sqlite", *conditions)
    assert re.findall(r":(\w+)", text) == list(values) == ["value_0", "value_1", "value_2"]
    assert "AND NOT (m.expired = :value_2)" in text
