"""The example's place in a database: its queues, its table of totals, and orders sent to it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from decimal import Decimal

from sqlalchemy import BigInteger, Column, Date, MetaData, Numeric, String, Table, cast, inspect, select
from sqlalchemy.exc import OperationalError, ProgrammingError

from queue_pipeline.errors import ConfigurationError, QueuePipelineError
from queue_pipeline.transport.operations.install import Installed
from queue_pipeline.transport.transport import QueueTransport
from tools.example.samples import Parcel, Sample

ORDERS, BILLING, SHIPPING, ERROR = "orders", "billing", "shipping", "error"
TOTALS = "order_totals"
PARCEL = 5_000
PARCELS_A_SECOND = 10
"""At a given rate, orders arrive in small groups: one transaction each would be slower than the rate."""
HIGHEST_RATE = 100_000.0


@dataclass(frozen=True, slots=True)
class Total:
    """What a country ordered on a day."""

    country: str
    day: str
    orders: int
    revenue: Decimal


class NoTotalsError(QueuePipelineError):
    """The table of totals is not there."""

    exit_code = 3


def install(transport: QueueTransport) -> list[Installed]:
    """Create the queues and the table; what is there already is left as it is."""
    done = transport.install(ORDERS, BILLING, SHIPPING, plain_queues=[ERROR])
    table, engine = _totals_table(transport), transport.database.engine
    created = not inspect(engine).has_table(table.name, schema=table.schema)
    table.create(engine, checkfirst=True)
    return [*done, Installed(transport.resolve(TOTALS).canonical, created)]


def totals(transport: QueueTransport) -> list[Total]:
    """The table as it is now, the oldest day first."""
    table = _totals_table(transport)
    try:
        with transport.database.engine.connect() as connection:
            revenue = cast(table.c.revenue, String)  # SQLite has no decimals
            columns = select(table.c.country, table.c.day, table.c.orders, revenue)
            rows = connection.execute(columns.order_by(table.c.day, table.c.country)).all()
    except (OperationalError, ProgrammingError):
        if inspect(transport.database.engine).has_table(table.name, schema=table.schema):
            raise
        raise NoTotalsError(f"there is no table {TOTALS}; create it with: scripts/example install") from None
    return [Total(country, day.isoformat(), int(orders), _money(money)) for country, day, orders, money in rows]


def _totals_table(transport: QueueTransport) -> Table:
    """Orders and revenue by country and day; the pipeline `orders` adds to it."""
    address = transport.resolve(TOTALS)
    return Table(
        address.table,
        MetaData(schema=address.schema),
        Column("country", String(2), primary_key=True),
        Column("day", Date, primary_key=True),
        Column("orders", BigInteger, nullable=False),
        Column("revenue", Numeric(18, 2), nullable=False),
    )


def send(
    transport: QueueTransport,
    samples: Iterable[Sample],
    *,
    rate: float | None = None,
    on_progress: Callable[[int], object] | None = None,
    sleep: Callable[[float], object] = time.sleep,
) -> Counter[str | None]:
    """Send to the queue `orders`, all in one transaction, or at a rate in a second; returns how many of each kind."""
    if rate is None:
        return _send(transport, _parcels(samples, PARCEL), on_progress)
    if not 0 < rate <= HIGHEST_RATE:
        raise ConfigurationError(
            f"a rate of {rate:g} orders a second; give a number above 0 and up to {HIGHEST_RATE:,.0f}"
        )
    sent: Counter[str | None] = Counter()
    start = time.monotonic()
    for parcel in _parcels(samples, max(1, round(rate / PARCELS_A_SECOND))):
        if (ahead := start + sent.total() / rate - time.monotonic()) > 0:
            sleep(ahead)
        sent += _send(transport, [parcel], on_progress, sent.total())
    return sent


def _send(
    transport: QueueTransport,
    parcels: Iterable[Parcel],
    on_progress: Callable[[int], object] | None,
    before: int = 0,
) -> Counter[str | None]:
    """One transaction for all of them."""
    sent: Counter[str | None] = Counter()
    with transport.transaction() as transaction:
        for parcel in parcels:
            transport.send(ORDERS, parcel.messages, transaction)
            if parcel.raw:
                transport.dispatch_columns([parcel.ready(ORDERS)], transaction)
            sent.update(parcel.kinds)
            sent[None] += len(parcel) - parcel.kinds.total()
            if on_progress is not None:
                on_progress(before + sent.total())
    return sent


def _parcels(samples: Iterable[Sample], size: int) -> Iterator[Parcel]:
    parcel = Parcel()
    for sample in samples:
        parcel.add(sample)
        if len(parcel) >= size:
            yield parcel
            parcel = Parcel()
    if len(parcel):
        yield parcel


def _money(text: str) -> Decimal:
    return Decimal(text).quantize(Decimal("0.01"))
