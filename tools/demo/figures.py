"""What the demo did, counted in the database and not in logs."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from queue_pipeline.transport.transport import QueueTransport
from tools.example import shop

_ALL = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Figures:
    """The queues and the table at one moment."""

    waiting: int
    billing: int
    shipping: int
    error: int
    orders: int
    revenue: Decimal

    @staticmethod
    def read(transport: QueueTransport) -> Figures:
        """Count everything."""
        totals = shop.totals(transport)
        return Figures(
            waiting=unprocessed(transport),
            billing=transport.peek(shop.BILLING, _ALL),
            shipping=transport.peek(shop.SHIPPING, _ALL),
            error=transport.peek(shop.ERROR, _ALL),
            orders=sum(total.orders for total in totals),
            revenue=sum((total.revenue for total in totals), Decimal(0)),
        )

    def complete(self, before: Figures, sent: int) -> bool:
        """Whether every message that was there or sent since became exactly one result."""
        good, bad = self.billing - before.billing, self.error - before.error
        arrived = before.waiting + sent - self.waiting
        same = good == self.shipping - before.shipping == self.orders - before.orders
        return same and good + bad == arrived

    def rows(self, before: Figures, sent: int, seconds: float) -> list[tuple[str, str, str]]:
        """A line for each thing that a person asks: what, this time, in all."""
        names = {
            "billing": "invoices in billing",
            "shipping": "parcels in shipping",
            "error": "bad orders in error",
            "orders": "orders in order_totals",
            "revenue": "revenue in order_totals",
        }
        made = [("orders sent", f"{sent:,}", "")]
        for field, name in names.items():
            now = getattr(self, field)
            made.append((name, f"{now - getattr(before, field):,}", f"{now:,}"))
        made.append(("orders still waiting", f"{self.waiting:,}", f"{self.waiting:,}"))
        made.append(("seconds from sent to processed", f"{seconds:.1f}", ""))
        return made


def unprocessed(transport: QueueTransport) -> int:
    """Orders that wait or are in work."""
    (status,) = transport.status(shop.ORDERS)
    return transport.peek(shop.ORDERS, _ALL) + (status.claimed or 0)
