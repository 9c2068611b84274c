"""The orders of the worked example: realistic, repeatable, and bad in known ways."""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest
from pydantic import ValidationError

from queue_pipeline.defs.orders import TAX_PERCENT, OrderPlaced
from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.messages import headers as wire
from tools.example.assortment import ARTICLES, CUSTOMERS
from tools.example.orders import good_orders, order_body, random_seed
from tools.example.samples import KINDS, UNREADABLE_HEADERS, Parcel, Sample, samples

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)


def some(count: int, seed: int = 7) -> list[dict]:
    return list(itertools.islice(good_orders(seed, NOW), count))


def test_the_same_seed_makes_the_same_orders_and_another_makes_others() -> None:
    assert some(50) == some(50)
    assert some(50) != some(50, seed=8)
    assert {order["OrderId"] for order in some(50)}.isdisjoint(order["OrderId"] for order in some(50, seed=8))


def test_every_good_order_fits_the_contract_of_the_pipeline() -> None:
    for order in some(500):
        placed = OrderPlaced.model_validate_json(order_body(order))
        assert placed.Country in TAX_PERCENT
        assert NOW - timedelta(days=10) < placed.PlacedAt <= NOW


def test_times_are_written_as_dotnet_writes_them() -> None:
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{7}Z", order["PlacedAt"]) for order in some(100))


def test_a_time_in_another_zone_is_the_same_time() -> None:
    elsewhere = NOW.astimezone(datetime.strptime("+0530", "%z").tzinfo)
    assert next(good_orders(1, elsewhere)) == next(good_orders(1, NOW))


def test_bodies_are_about_a_kibibyte() -> None:
    sizes = [len(order_body(order)) for order in some(1000)]
    assert 700 < sum(sizes) / len(sizes) < 1300


def test_few_customers_and_articles_make_most_of_the_business() -> None:
    orders = some(4000)
    customers = Counter(order["Customer"] for order in orders)
    articles = Counter(line["Sku"] for order in orders for line in order["Lines"])
    countries = Counter(order["Country"] for order in orders)
    assert customers.most_common(1)[0][1] > 20 * 4000 / len(CUSTOMERS)
    assert articles.most_common(1)[0][1] > 5 * articles.total() / len(ARTICLES)
    assert countries.most_common(1)[0][0] == "DE" and set(countries) == set(TAX_PERCENT)
    assert {line["Quantity"] >= 100 for order in orders for line in order["Lines"]} == {True, False}
    assert {order["Express"] for order in orders} == {True, False}


@pytest.mark.parametrize(("count", "bad", "spoiled"), [(2000, 0.01, 20), (100, 0.07, 7), (10, 1, 10), (10, 0, 0)])
def test_the_requested_share_of_orders_is_bad(count: int, bad: float, spoiled: int) -> None:
    made = list(samples(count, bad=bad, seed=1))
    assert len(made) == count
    assert sum(sample.kind is not None for sample in made) == spoiled


def test_bad_orders_are_of_every_kind_and_spread_over_all() -> None:
    made = list(samples(600, bad=0.1, seed=1))
    assert Counter(sample.kind for sample in made if sample.kind) == dict.fromkeys(KINDS, 10)
    assert all(any(sample.kind for sample in made[start : start + 60]) for start in range(0, 600, 60))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("country not served", UNREADABLE_HEADERS)])
def test_a_bad_body_does_not_fit_the_contract(kind: str) -> None:
    for order in some(50):
        with pytest.raises(ValidationError):
            OrderPlaced.model_validate_json(KINDS[kind](order))


def test_an_order_from_a_country_that_is_not_served_is_otherwise_good() -> None:
    for order in some(50):
        assert OrderPlaced.model_validate_json(KINDS["country not served"](order)).Country not in TAX_PERCENT


@pytest.mark.parametrize("share", [-0.1, 1.1])
def test_an_invalid_share_is_refused(share: float) -> None:
    with pytest.raises(ConfigurationError, match="0 to 1"):
        list(samples(1, bad=share, seed=1))


def test_messages_carry_the_headers_of_the_shop() -> None:
    (sample,) = samples(1, seed=1)
    headers = sample.message.headers
    assert headers[wire.ENCLOSED_MESSAGE_TYPES] == "Shop.OrderPlaced"
    assert headers[wire.ORIGINATING_ENDPOINT] == "Shop.Web"
    assert json.loads(sample.message.body)["OrderId"].startswith("SO-")


def test_messages_of_the_same_order_have_ids_of_their_own() -> None:
    first, second = (next(samples(1, seed=1)) for _ in range(2))
    assert first.message.body[:30] == second.message.body[:30]
    assert first.message.headers[wire.MESSAGE_ID] != second.message.headers[wire.MESSAGE_ID]


def test_rows_with_unreadable_headers_are_kept_separate_from_messages() -> None:
    parcel = Parcel()
    for sample in samples(12, bad=1, seed=1):
        parcel.add(sample)
    assert (len(parcel), len(parcel.messages), len(parcel.raw)) == (12, 10, 2)
    ready = parcel.ready("orders")
    assert len(ready.headers) == 2
    for text in ready.headers:
        with pytest.raises(ValueError):
            wire.decode(text)


def test_a_random_seed_is_a_valid_seed() -> None:
    assert all(0 <= random_seed() <= 0xFFFFFF for _ in range(100))


def test_a_sample_is_good_unless_it_says_otherwise() -> None:
    (sample,) = samples(1, seed=3)
    assert sample == Sample(sample.message, None)
