"""Orders for the worked example, realistic and repeatable: the events that a web shop publishes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import Any, TypeAlias

from queue_pipeline.transport.messages.message import OutgoingMessage, new_message
from tools.example.assortment import ARTICLES, COUNTRIES, CUSTOMERS, falling

MESSAGE_TYPE = "Shop.OrderPlaced"
ENDPOINT = "Shop.Web"
OLDEST_DAYS = 9.0

Order: TypeAlias = dict[str, Any]

_ARTICLE_WEIGHTS = falling(len(ARTICLES))
_CUSTOMER_WEIGHTS = falling(len(CUSTOMERS))
_COUNTRY_WEIGHTS = list(accumulate(country.share for country in COUNTRIES))
# Most people want one of a thing; a few order by the carton or the pallet, which earns them a discount.
_QUANTITIES, _QUANTITY_WEIGHTS = (1, 2, 3, 5, 24, 120), list(accumulate((60, 22, 9, 5, 3, 1)))
_LINES, _LINE_WEIGHTS = (1, 2, 3, 4, 6), list(accumulate((20, 26, 25, 19, 10)))
_CHANNELS = ("Web", "Web", "App", "App", "Phone")
_REMARKS = (
    "Please ring twice; the bell of the neighbours is louder than ours. If nobody opens, the bakery on the ground "
    "floor takes parcels until six.",
    "It is a present: no invoice in the parcel, and gift wrapping where there is some. The card should read: with love "
    "from all of us.",
    "Deliver on a weekday before noon, at the back entrance beside the bicycle stand; the lift is out of order until "
    "further notice.",
)


# One encoder for all orders, rather than one made for each.
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), check_circular=False).encode


def good_orders(seed: int, until: datetime | None = None) -> Iterator[Order]:
    """Orders without end, the same for the same seed and time; the last days lie before `until`, by default now."""
    chance = random.Random(seed)
    end = (until or datetime.now(UTC)).astimezone(UTC).replace(tzinfo=None)
    number = 0
    while True:
        number += 1
        yield _order(f"SO-{seed % 0x1000000:06X}-{number:07d}", chance, end)


def order_body(order: Order) -> bytes:
    """An order as it travels: compact JSON, characters as they are."""
    return _encode(order).encode()


def order_message(body: bytes) -> OutgoingMessage:
    """The event with the headers that the shop would write."""
    return new_message(body, message_type=MESSAGE_TYPE, endpoint=ENDPOINT)


def random_seed() -> int:
    """A seed for orders that are not to be repeated."""
    return random.SystemRandom().randrange(0x1000000)


def _order(order_id: str, chance: random.Random, end: datetime) -> Order:
    (customer,) = chance.choices(CUSTOMERS, cum_weights=_CUSTOMER_WEIGHTS)
    (country,) = chance.choices(COUNTRIES, cum_weights=_COUNTRY_WEIGHTS)
    (line_count,) = chance.choices(_LINES, cum_weights=_LINE_WEIGHTS)
    articles = chance.choices(ARTICLES, k=line_count, cum_weights=_ARTICLE_WEIGHTS)
    quantities = chance.choices(_QUANTITIES, k=line_count, cum_weights=_QUANTITY_WEIGHTS)
    code, town = country.towns[int(chance.random() * len(country.towns))]
    return {
        "OrderId": order_id,
        "Customer": customer,
        "Email": f"{customer.split()[0].lower()}.{int(chance.random() * 10_000):04d}@example.com",
        "Country": country.code,
        "Currency": "EUR",
        "PlacedAt": _moment(chance, end),
        "Express": chance.random() < 0.15,
        "Channel": _CHANNELS[int(chance.random() * len(_CHANNELS))],
        "ShipTo": {
            "Name": customer,
            "Street": f"{country.street} {1 + int(chance.random() * 180)}",
            "PostalCode": code,
            "City": town,
            "Country": country.code,
        },
        "Lines": [
            {
                "Line": at,
                "Sku": article.sku,
                "Description": article.name,
                "Quantity": quantity,
                "UnitPrice": article.cents / 100,
                "Warehouse": f"{country.code}-{1 + at % 3}",
            }
            for at, (article, quantity) in enumerate(zip(articles, quantities, strict=True), 1)
        ],
        "Remark": _REMARKS[int(chance.random() * len(_REMARKS))],
        "Session": f"{chance.getrandbits(128):032x}",
    }


def _moment(chance: random.Random, end: datetime) -> str:
    """A time as .NET writes it, with seven digits; recent days are busier than those before."""
    placed = end - timedelta(days=min(chance.expovariate(0.6), OLDEST_DAYS))
    return f"{placed.isoformat(timespec='microseconds')}{int(chance.random() * 10)}Z"
