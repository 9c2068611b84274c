"""The account: reads the tables with statements of its own, and says what became of every message that was sent."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from queue_pipeline.transport.addresses.queues import (
    CLAIMED_SUFFIX,
    CLAIMS_TABLE,
    DELAYED_SUFFIX,
    OUTBOX_TABLE,
    SLOTS_TABLE,
)
from tools.chaos.accountant import Account
from tools.chaos.dagster.plan import (
    BILLED,
    BILLING,
    ERRORS,
    HARMLESS,
    HOSTILE,
    HOSTILE_ERRORS,
    HOSTILE_RESULTS,
    ORDERS,
    RESULTS,
    TOTALS,
    order,
)
from tools.chaos.dagster.shop import SENT, SUMS

_LEFT_OVER_IN = {ORDERS: (ORDERS, BILLING), HOSTILE: (HOSTILE,)}
_ZONE = "UTC"


def accounts(connection: sa.Connection) -> list[Account]:
    """The account of the orders, and of the hostile messages."""
    found = [_orders(connection), _hostile(connection)]
    for account in found:
        for queue in _LEFT_OVER_IN[account.arena]:
            _count_rows(connection, account, [queue, f"{queue}.{CLAIMED_SUFFIX}", f"{queue}.{DELAYED_SUFFIX}"])
    _count_rows(connection, found[0], (CLAIMS_TABLE, OUTBOX_TABLE))
    # Slot 0 is the gate of a queue, and stays.
    _count_rows(connection, found[0], (SLOTS_TABLE,), sa.column("slot") > 0)
    return found


def compare(account: Account, sent: Mapping[int, bool], results: Counter[int], failed: Counter[int]) -> None:
    """Every message is once in the results, or once in the error queue; `sent` says which of them it has to be."""
    account.sent, account.results, account.failed = len(sent), results.total(), failed.total()
    for number, succeeds in sent.items():
        for place, there, wanted in (("results", results, succeeds), ("the error queue", failed, not succeeds)):
            if there[number] < wanted:
                account.lost[f"message {number} of {account.arena} is not in {place}"] += 1
            elif there[number] > wanted:
                times = f"{there[number]} times in {place}, not {int(wanted)}"
                account.doubled[f"message {number} of {account.arena} is {times}"] += 1
    for number in (results.keys() | failed.keys()) - sent.keys():
        account.never_sent[f"message {number} of {account.arena}"] += 1


def compare_totals(
    account: Account, table: str, expected: Mapping[int, tuple[int, int]], found: Mapping[int, Any]
) -> None:
    """What was added up in a table is what was sent."""
    for customer in expected.keys() | found.keys():
        wanted, there = expected.get(customer, (0, 0)), tuple(found.get(customer, (0, 0)))
        if there != wanted:
            account.changed[f"{table} of customer {customer}: {there}, not {wanted}"] += 1


def _orders(connection: sa.Connection) -> Account:
    account = Account(ORDERS)
    sent = {number: True for number, _ in _sent(connection, ORDERS)}
    results, failed = Counter[int](), Counter[int]()
    for result in _bodies(connection, RESULTS):
        results[result["number"]] += 1
        if {name: result[name] for name in ("number", "customer", "amount")} != order(result["number"]):
            account.changed[f"message {result['number']} in {RESULTS}: {result}"] += 1
        if set(result["zones"]) != {_ZONE}:
            account.changed[f"message {result['number']} met settings of another pipeline: {result['zones']}"] += 1
    for failure in _bodies(connection, ERRORS):
        failed[failure["number"]] += 1
    compare(account, sent, results, failed)
    expected: dict[int, tuple[int, int]] = {}
    for number in sent:
        one = order(number)
        messages, amount = expected.get(one["customer"], (0, 0))
        expected[one["customer"]] = (messages + 1, amount + one["amount"])
    for name in (TOTALS, BILLED):
        rows = connection.execute(sa.select(SUMS[name])).all()
        compare_totals(account, name, expected, {row[0]: (row[1], row[2]) for row in rows})
        account.effects += sum(row[1] for row in rows)
    return account


def _hostile(connection: sa.Connection) -> Account:
    account = Account(HOSTILE)
    actions = dict(_sent(connection, HOSTILE))
    results, failed = Counter[int](), Counter[int]()
    for place, counted in ((HOSTILE_RESULTS, results), (HOSTILE_ERRORS, failed)):
        for body in _bodies(connection, place):
            number = body["number"]
            counted[number] += 1
            if actions.get(number, body["action"]) != body["action"]:
                account.changed[f"message {number} in {place}: {body}"] += 1
    compare(account, {number: action in HARMLESS for number, action in actions.items()}, results, failed)
    return account


def _sent(connection: sa.Connection, flow: str) -> Iterator[tuple[int, str]]:
    chosen = sa.select(SENT.c.first_number, SENT.c.messages, SENT.c.action).where(SENT.c.flow == flow)
    for first, messages, action in connection.execute(chosen):
        for number in range(first, first + messages):
            yield number, action


def _bodies(connection: sa.Connection, queue: str) -> Iterator[dict[str, Any]]:
    for body in connection.execute(sa.select(sa.column("body", sa.LargeBinary)).select_from(sa.table(queue))).scalars():
        yield json.loads(bytes(body))


def _count_rows(
    connection: sa.Connection, account: Account, tables: Sequence[str], *where: sa.ColumnElement[bool]
) -> None:
    for name in tables:
        table = sa.table(sa.quoted_name(name, quote=True))
        if rows := connection.execute(sa.select(sa.func.count()).select_from(table).where(*where)).scalar_one():
            account.left_over[f"rows in {name}"] += rows
