"""Sample messages for `send --count`: small orders that look like real ones, the same for the same number."""

from __future__ import annotations

from typing import Any

MESSAGE_TYPE = "Samples.OrderPlaced"

_CUSTOMERS = ("Ada Lovelace", "Grace Hopper", "Edsger Dijkstra", "Barbara Liskov", "Zoë Łukasiewicz")
_ARTICLES = (("PEN-01", 1.20), ("NOTE-A5", 4.75), ("LAMP-7", 39.90), ("CHAIR-2", 189.00), ("DESK-3", 420.50))


def sample_order(number: int) -> dict[str, Any]:
    """The order with this number."""
    lines: list[dict[str, Any]] = []
    for position in range(1 + number % 3):
        article, price = _ARTICLES[(number + position) % len(_ARTICLES)]
        lines.append({"article": article, "quantity": 1 + (number * 7 + position) % 5, "price": price})
    return {
        "number": number,
        "order_id": f"ORD-{number:08d}",
        "customer": _CUSTOMERS[number % len(_CUSTOMERS)],
        "currency": "EUR",
        "lines": lines,
        "total": round(sum(line["quantity"] * line["price"] for line in lines), 2),
    }
