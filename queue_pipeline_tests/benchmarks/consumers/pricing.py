"""The worked example in plain Python, as a program without Spark does it: an order in, an invoice and a parcel out.

Amounts are whole cents until they are written.
"""

from __future__ import annotations

from datetime import UTC, date
from typing import Any, NamedTuple

from pydantic import ValidationError

from queue_pipeline.defs.orders import (
    EXPRESS,
    FREE_SHIPPING_FROM,
    SHIPPING,
    TAX_PERCENT,
    VOLUME_DISCOUNT_PERCENT,
    Line,
    OrderPlaced,
)

_validate = OrderPlaced.model_validate_json


class RefusedError(Exception):
    """An order that goes to the error queue."""

    def __init__(self, error_type: str, message: str) -> None:
        super().__init__(message)
        self.error_type = error_type


class Priced(NamedTuple):
    """An order that was priced: where and when it counts, its total in cents, and its two results."""

    country: str
    day: date
    cents: int
    invoice: dict[str, Any]
    parcel: dict[str, Any]


def price(body: bytes) -> Priced:
    """Validate and price an order. Raises `RefusedError` for one that does not fit the model or is not served."""
    try:
        order = _validate(body)
    except ValidationError as error:
        raise RefusedError("MessageBodyInvalid", str(error)) from None
    country = order.Country
    tax_percent = TAX_PERCENT.get(country)
    if tax_percent is None:
        raise RefusedError("CountryNotServed", f"no deliveries to {country}")
    nets = [_net(line) for line in order.Lines]
    net = sum(nets)
    shipping = EXPRESS if order.Express else 0 if net >= FREE_SHIPPING_FROM else SHIPPING
    tax = ((net + shipping) * tax_percent + 50) // 100
    total = net + shipping + tax
    invoice = {
        "OrderId": order.OrderId,
        "Customer": order.Customer,
        "Country": country,
        "Lines": [
            {"Sku": line.Sku, "Quantity": line.Quantity, "UnitPrice": float(line.UnitPrice), "Net": cents / 100}
            for line, cents in zip(order.Lines, nets, strict=True)
        ],
        "Net": net / 100,
        "Shipping": shipping / 100,
        "Tax": tax / 100,
        "Total": total / 100,
        "Currency": order.Currency,
    }
    parcel = {
        "OrderId": order.OrderId,
        "Customer": order.Customer,
        "Country": country,
        "Express": order.Express,
        "Items": [{"Sku": line.Sku, "Quantity": line.Quantity} for line in order.Lines],
    }
    placed = order.PlacedAt
    # The sample orders are in UTC; converting each of them would only cost time.
    day = placed.date() if placed.tzinfo is None or not placed.utcoffset() else placed.astimezone(UTC).date()
    return Priced(country, day, total, invoice, parcel)


def _net(line: Line) -> int:
    """The amount of a line after its volume discount, rounded to the cent, half up."""
    quantity = line.Quantity
    cents = int(line.UnitPrice * 100) * quantity
    for at_least, percent in VOLUME_DISCOUNT_PERCENT:
        if quantity >= at_least:
            return (cents * (100 - percent) + 50) // 100
    return cents
