"""`scripts/example` on every database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from queue_pipeline.cli.session import Session
from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.operations.user_table_sql import TableRows
from queue_pipeline_tests.support.command_line import CommandLine, Ran, run
from queue_pipeline_tests.support.databases.backends import Backend
from tools.example import command, shop
from tools.example.samples import NOT_HEADERS, UNREADABLE_HEADERS, samples


@pytest.fixture
def cli(backend: Backend) -> CommandLine:
    return CommandLine(backend)


@pytest.fixture
def example(backend: Backend) -> Callable[..., Ran]:
    """`scripts/example` with the words that are given."""

    def program(words: list[str]) -> int:
        session = Session()
        session.database, session.schema = backend.url, backend.schema
        return command.main(words, session)

    return lambda *words: run(*words, program=program)


@pytest.fixture
def installed(example: Callable[..., Ran]) -> Callable[..., Ran]:
    assert example("install").code == 0
    return example


def merge(backend: Backend, *rows: tuple) -> None:
    """As the pipeline does it."""
    transport = backend.transport()
    columns = ("country", "day", "orders", "revenue")
    with transport.transaction() as connection:
        transport.user_tables.write(
            connection, TableRows("order_totals", columns, rows, ("country", "day"), ("orders", "revenue"))
        )


def test_install_makes_queues_and_table_once(cli: CommandLine, example: Callable[..., Ran]) -> None:
    first = example("install", "--json").json["tables"]
    assert all(table["created"] for table in first)
    assert sum("order_totals" in table["table"] for table in first) == 1
    again = example("install", "--json").json["tables"]
    assert [table["table"] for table in again] == [table["table"] for table in first]
    assert not any(table["created"] for table in again)
    names = {queue["queue"].strip('"').split(".")[-1].strip('"') for queue in cli("status", "--json").json["queues"]}
    assert {name.partition("@")[0] for name in names} == {"orders", "billing", "shipping", "error"}


def test_orders_are_sent_with_the_bad_ones_that_were_asked_for(cli: CommandLine, installed: Callable[..., Ran]) -> None:
    printed = installed("send", "--count", 120, "--bad", 0.1, "--seed", 5, "--json").json
    assert (printed["sent"], printed["seed"], sum(printed["bad"].values())) == (120, 5, 12)
    shown = cli("show", "orders", "--max", 200, "--json").json["messages"]
    assert len(shown) == 120
    unreadable = [message for message in shown if message["headers"] is None]
    assert len(unreadable) == printed["bad"][UNREADABLE_HEADERS] == 2
    assert {message["raw_headers"] for message in unreadable} == {NOT_HEADERS}


def test_the_same_seed_sends_the_same_orders_again(cli: CommandLine, installed: Callable[..., Ran]) -> None:
    for _ in range(2):
        installed("send", "--count", 3, "--bad", 0, "--seed", 5)
    bodies = [message["body"] for message in cli("show", "orders", "--json").json["messages"]]
    assert [body.split(",")[:3] for body in bodies[:3]] == [body.split(",")[:3] for body in bodies[3:]]


def test_text_names_the_seed_and_the_kinds(installed: Callable[..., Ran]) -> None:
    printed = installed("send", "--count", 10, "--bad", 0.2, "--seed", 9).out
    assert "sent 10 orders" in printed and "seed 9" in printed and "1 broken JSON, 1 missing field" in printed


def test_without_installation_the_next_step_is_named(example: Callable[..., Ran]) -> None:
    assert "queue-pipeline install" in example("send").error
    refused = example("totals")
    assert refused.code == 3
    assert "scripts/example install" in refused.error


def test_totals_are_exact_and_added_up(backend: Backend, installed: Callable[..., Ran]) -> None:
    assert "no order was processed" in installed("totals").out
    assert installed("totals", "--json").json == {"totals": []}
    day = date(2026, 11, 16)
    merge(backend, ("DE", day, 3, Decimal("1000.10")), ("AT", day, 1, Decimal("0.05")))
    merge(backend, ("DE", day, 2, Decimal("234.40")))
    assert installed("totals", "--json").json["totals"] == [
        {"country": "AT", "day": "2026-11-16", "orders": 1, "revenue": "0.05"},
        {"country": "DE", "day": "2026-11-16", "orders": 5, "revenue": "1234.50"},
    ]
    text = installed("totals").out
    assert "1,234.50" in text and "1,234.55" in text


def test_at_a_rate_orders_come_in_small_groups_that_are_seen_at_once(sqlite: Backend) -> None:
    transport = sqlite.transport()
    shop.install(transport)
    waits: list[tuple[float, int]] = []
    sent = shop.send(
        transport,
        samples(30, bad=0.1, seed=1),
        rate=100,
        sleep=lambda seconds: waits.append((seconds, transport.peek("orders"))),
    )
    assert sent.total() == 30 and sent[None] == 27
    assert [count for _, count in waits] == [10, 20]
    assert 0 < waits[-1][0] <= 0.2
    with pytest.raises(ConfigurationError, match="above 0"):
        shop.send(transport, [], rate=0)


def test_a_failure_leaves_nothing_behind(sqlite: Backend) -> None:
    transport = sqlite.transport()
    shop.install(transport)

    def broken():
        yield from samples(6_000, seed=1)
        raise RuntimeError("out of orders")

    with pytest.raises(RuntimeError):
        shop.send(transport, broken())
    assert transport.peek("orders") == 0
