"""The shop around the example pipeline: places orders from a process of its own, and counts what came out."""

from __future__ import annotations

import json
import subprocess
import uuid
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal
from typing import Any

from sqlalchemy import text

from queue_pipeline.orchestration.names import PIPELINE_TAG
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.claims.claim import ClaimStatus
from queue_pipeline_tests.support import command_line
from queue_pipeline_tests.support.dagster.dagster_processes import Dagster, Run
from queue_pipeline_tests.support.databases.backends import run_sql
from queue_pipeline_tests.support.waiting import eventually

QUEUES = ("orders", "billing", "shipping")
TAX = {"AT": Decimal("0.20"), "DE": Decimal("0.19"), "IT": Decimal("0.22")}
DAYS = ("2026-03-01", "2026-03-02")
PROCESSED_WITHIN_SECONDS = 150.0
"""Less than the lease of five minutes: what is only freed by its lease is too late."""

CREATE_TOTALS = """
CREATE TABLE order_totals (
    country char(2) NOT NULL,
    day date NOT NULL,
    orders bigint NOT NULL,
    revenue numeric(18, 2) NOT NULL,
    PRIMARY KEY (country, day)
)"""


@dataclass
class Shop:
    """One database with the queues of the example, and everything that was ever sent to it."""

    transport: QueueTransport
    environment: Mapping[str, str]
    good: list[dict[str, Any]] = field(default_factory=list)
    bad: list[str] = field(default_factory=list)

    def open(self) -> None:
        """Create the queues and the table of totals."""
        self.transport.install(*QUEUES)
        self.sql(CREATE_TOTALS)

    def command(self, *arguments: str, stdin: str = "") -> str:
        """Run `queue-pipeline` as a process of its own."""
        done = subprocess.run(
            [*command_line.program(), *arguments],
            input=stdin,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            timeout=120,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def place(self, good: int, bad: int = 0) -> None:
        """Send orders, some of which no one can process, from another process."""
        orders = [_order(number) for number in range(good)]
        broken = [_broken(number) for number in range(bad)]
        bodies = [json.dumps(order) for order in orders]
        bodies[1:1] = broken
        lines = [json.dumps({"type": "Shop.OrderPlaced", "body": body}) for body in bodies]
        self.command("send", "orders", "--jsonl", "-", stdin="\n".join(lines))
        self.good += orders
        self.bad += broken

    def waiting(self) -> int:
        """Messages that are in the input queue."""
        return int(self.sql("SELECT count(*) FROM orders")[0][0])

    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is held, in one look."""
        looked = 'SELECT (SELECT count(*) FROM orders), (SELECT count(*) FROM "orders.Claimed"), '
        return tuple(self.sql(f'{looked} (SELECT count(*) FROM "QueueClaims")')[0]) == (0, 0, 0)

    def wait_until_idle(self) -> None:
        eventually(self.is_idle, seconds=PROCESSED_WITHIN_SECONDS)

    def held(self) -> ClaimStatus:
        """The batch that is being worked on, once there is one."""

        def look() -> list[ClaimStatus]:
            return [claim for claim in self.transport.claims.list() if claim.owner is not None]

        (claim,) = eventually(look, seconds=PROCESSED_WITHIN_SECONDS)
        return claim

    def check_exactly_once(self) -> None:
        """Everything that was ever sent came out once, on its way, and nothing is left."""
        assert self.is_idle()
        expected = Counter(order["OrderId"] for order in self.good)
        assert max(expected.values(), default=1) == 1
        invoices = [json.loads(body) for body in self.bodies("billing")]
        assert Counter(invoice["OrderId"] for invoice in invoices) == expected
        assert Counter(json.loads(body)["OrderId"] for body in self.bodies("shipping")) == expected
        assert Counter(self.bodies("error")) == Counter(self.bad)
        totals = {order["OrderId"]: _total(order) for order in self.good}
        assert {invoice["OrderId"]: Decimal(str(invoice["Total"])) for invoice in invoices} == totals
        assert self.totals() == _totals(self.good)

    def bodies(self, queue: str) -> list[str]:
        """What is in a queue."""
        return [row[0] for row in self.sql(f"SELECT convert_from(body, 'UTF8') FROM {queue}")]

    def totals(self) -> dict[tuple[str, str], tuple[int, Decimal]]:
        """Orders and revenue by country and day."""
        rows = self.sql("SELECT country, CAST(day AS text), orders, revenue FROM order_totals")
        return {(row[0], row[1]): (row[2], row[3]) for row in rows}

    @contextmanager
    def locked_totals(self) -> Iterator[None]:
        """Hold the table that the completion of a batch writes to."""
        with self.transport.transaction() as connection:
            connection.execute(text("LOCK TABLE order_totals IN ACCESS EXCLUSIVE MODE"))
            yield

    def somebody_waits_for_totals(self) -> bool:
        return bool(
            self.sql("SELECT 1 FROM pg_locks WHERE NOT granted AND relation = CAST('order_totals' AS regclass)")
        )

    def sql(self, statement: str, parameters: tuple[Any, ...] = ()) -> list[Any]:
        with self.transport.transaction() as connection:
            return run_sql(connection, statement, parameters)


def runs_of_orders(dagster: Dagster) -> list[Run]:
    """The runs of the example pipeline, the newest first."""
    return dagster.runs(tags={PIPELINE_TAG: "orders"})


def settle(shop: Shop, dagster: Dagster) -> None:
    """End runs that linger for more, as a pause does, and let those that are at work finish."""
    shop.transport.pauses.pause("orders", by="the tests")
    eventually(lambda: all(run.is_over for run in runs_of_orders(dagster)), seconds=PROCESSED_WITHIN_SECONDS)
    shop.transport.pauses.resume("orders")


def _order(number: int) -> dict[str, Any]:
    countries = list(TAX)
    return {
        "OrderId": f"O-{uuid.uuid4()}",
        "Customer": ("Ada Lovelace", "Edsger Dijkstra", "Zoë Łukasiewicz")[number % 3],
        "Country": countries[number % len(countries)],
        "Currency": "EUR",
        "PlacedAt": f"{DAYS[number % 2]}T{number % 24:02d}:30:00Z",
        "Express": number % 5 == 0,
        "Lines": [
            {"Sku": "NOTE-A5", "Quantity": 1 + number % 7, "UnitPrice": "4.75"},
            {"Sku": "LAMP-7", "Quantity": 1 + number % 4, "UnitPrice": "39.90"},
        ],
    }


def _broken(number: int) -> str:
    """A body that is no JSON, an order without lines, one from a country that is not served."""
    order = _order(number)
    kinds = (
        f"no JSON {order['OrderId']}",
        json.dumps({**order, "Lines": []}),
        json.dumps({**order, "Country": "US"}),
    )
    return kinds[number % len(kinds)]


def _total(order: Mapping[str, Any]) -> Decimal:
    net = sum((line["Quantity"] * Decimal(line["UnitPrice"]) for line in order["Lines"]), Decimal(0))
    shipping = Decimal("14.50") if order["Express"] else Decimal(0) if net >= 150 else Decimal("6.90")
    tax = ((net + shipping) * TAX[order["Country"]]).quantize(Decimal("0.01"), ROUND_HALF_UP)
    return net + shipping + tax


def _totals(orders: list[dict[str, Any]]) -> dict[tuple[str, str], tuple[int, Decimal]]:
    totals: dict[tuple[str, str], tuple[int, Decimal]] = {}
    for order in orders:
        key = order["Country"], order["PlacedAt"][:10]
        count, revenue = totals.get(key, (0, Decimal(0)))
        totals[key] = count + 1, revenue + _total(order)
    return totals
