"""The Python of docs/queues-from-python.md runs from top to bottom, and does what the page says."""

import re
from pathlib import Path

from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE
from queue_pipeline_tests.support.databases.failed import fail, failure

PAGE = Path(__file__).resolve().parents[3] / "docs/queues-from-python.md"


def test_every_block_of_the_page_runs_after_the_one_before(sqlite, monkeypatch, capsys):
    monkeypatch.setenv(ENVIRONMENT_VARIABLE, sqlite.url)
    transport = sqlite.transport()
    transport.install("orders")
    kinds = ("Shop.LateError", "Shop.NoStockError", "Shop.NoStockError")
    body = b'{"customer": "c1", "cents": 5, "country": "DE"}'
    fail(transport, *(failure(transport, body=body, kind=kind) for kind in kinds))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) == 3
    names: dict[str, object] = {"__name__": __name__}
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "pending=400" in printed
    causes = [line.split()[:2] for line in printed.splitlines() if "Error" in line and not line.startswith("[")]
    assert causes == [["2", "Shop.NoStockError"], ["1", "Shop.LateError"]]
    frame = names["failed"]
    assert frame.groupby(["exception_type", "payload.country"]).size().to_dict() == {
        ("Shop.LateError", "DE"): 1,
        ("Shop.NoStockError", "DE"): 2,
    }
    # 1,000 were sent; the three ways of receiving took 100, 500 and, by default, some more.
    assert transport.peek("billing") == 1_000 - transport.peek("orders")
    totals = sqlite.sql(transport, "SELECT customer, cents FROM customer_totals")
    assert [tuple(row) for row in totals] == [("c1", 995 * (transport.peek("billing") - 600))]
