"""The example's place in a database: its queues, its table of totals, and orders sent to it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from decimal import Decimal

from queue_pipeline.example.samples import Parcel, Sample
from queue_pipeline.transport.errors import ConfigurationError, QueuePipelineError, TableNotFoundError
from queue_pipeline.transport.operations.install import Installed
from queue_pipeline.transport.transport import QueueTransport

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
    dialect, table = transport.database.dialect, transport.resolve(TOTALS)
    exists = dialect.statement("schema.exists", queue=table)
    create = dialect.statement("example.create_order_totals", table=table)
    created = not transport.database.run(lambda own: own.rows(exists), write=False)
    transport.database.run(lambda own: own.execute(create))
    return [*done, Installed(table.canonical, created)]


def totals(transport: QueueTransport) -> list[Total]:
    """The table as it is now."""
    command = transport.database.dialect.statement("example.order_totals", table=transport.resolve(TOTALS))
    try:
        rows = transport.database.run(lambda own: own.rows(command), write=False)
    except TableNotFoundError:
        raise NoTotalsError(f"there is no table {TOTALS}; create it with: queue-pipeline example install") from None
    # SQLite keeps neither dates nor decimals as such.
    return [Total(country, _day(day), int(orders), _money(revenue)) for country, day, orders, revenue in rows]


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


def _day(value: object) -> str:
    return value.isoformat() if isinstance(value, date) else str(value)[:10]


def _money(value: object) -> Decimal:
    return Decimal(str(value)).quantize(Decimal("0.01"))
