"""Who orders what in the example: customers, countries and articles, each with how often it occurs."""

from __future__ import annotations

from itertools import accumulate, product
from typing import NamedTuple


class Country(NamedTuple):
    """A country that is delivered to, with its share of the orders, a street and towns to deliver to."""

    code: str
    share: int
    street: str
    towns: tuple[tuple[str, str], ...]


class Article(NamedTuple):
    """Something to order; the price in cents, so that sums stay exact."""

    sku: str
    name: str
    cents: int


COUNTRIES = (
    Country(
        "DE",
        38,
        "Lindenstraße",
        (("10115", "Berlin"), ("20095", "Hamburg"), ("80331", "München"), ("04109", "Leipzig")),
    ),
    Country(
        "FR",
        21,
        "Rue de la République",
        (("75001", "Paris"), ("69001", "Lyon"), ("31000", "Toulouse"), ("67000", "Strasbourg")),
    ),
    Country("IT", 14, "Via Garibaldi", (("20121", "Milano"), ("00184", "Roma"), ("10121", "Torino"))),
    Country("NL", 11, "Kerkstraat", (("1012 AB", "Amsterdam"), ("3011 AA", "Rotterdam"), ("3511 AA", "Utrecht"))),
    Country("PL", 9, "Ulica Długa", (("00-001", "Warszawa"), ("30-001", "Kraków"), ("90-001", "Łódź"))),
    Country("AT", 7, "Bahnhofstraße", (("1010", "Wien"), ("8010", "Graz"), ("5020", "Salzburg"))),
)

_KINDS = (
    ("PEN", "Fountain pen", 1890),
    ("INK", "Bottle of ink, 50 ml", 1150),
    ("NOTE", "Notebook A5, dotted, 192 pages", 1495),
    ("PAPER", "Writing paper, 100 sheets", 899),
    ("LAMP", "Desk lamp with dimmer", 8990),
    ("CHAIR", "Office chair, adjustable", 24900),
    ("DESK", "Standing desk, oak", 64900),
    ("SHELF", "Wall shelf, 80 cm", 5450),
    ("BAG", "Messenger bag, waxed canvas", 11900),
    ("MUG", "Mug, stoneware", 1290),
)
_COLOURS = (("BLK", "black", 0), ("BLU", "blue", 100), ("GRN", "green", 100), ("RED", "red", 150))

_BY_PRICE = tuple(
    Article(f"{sku}-{code}", f"{name}, {colour}", cents + extra)
    for (sku, name, cents), (code, colour, extra) in product(_KINDS, _COLOURS)
)
ARTICLES = tuple(_BY_PRICE[at * 7 % len(_BY_PRICE)] for at in range(len(_BY_PRICE)))
"""From the bestseller on; kinds and colours mixed."""

_GIVEN = (
    "Ada", "Björn", "Chiara", "Dorota", "Emil", "Françoise", "Grace", "Hana", "Ines", "Jan", "Katarzyna", "Lars",
    "Mélanie", "Noor", "Otto", "Paolo", "Rosa", "Søren", "Tomasz", "Zoë",
)  # fmt: skip
_FAMILY = (
    "Bakker", "Bauer", "Bernard", "Conti", "Dubois", "Ferrari", "Fischer", "Gruber", "Hoffmann", "Jansen", "Kowalska",
    "Lefèvre", "Łukasiewicz", "Meyer", "Moreau", "Nowak", "Ricci", "Schmidt", "Visser", "Wagner",
)  # fmt: skip

CUSTOMERS = tuple(f"{given} {family}" for family, given in product(_FAMILY, _GIVEN))


def falling(count: int) -> list[float]:
    """Cumulative weights in which the n-th of many is n times as rare as the first, as with names and bestsellers."""
    return list(accumulate(1 / rank for rank in range(1, count + 1)))
