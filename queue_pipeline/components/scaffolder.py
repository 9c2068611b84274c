"""`dg scaffold defs queue_pipeline.QueuePipelines shop`: a defs.yaml, a transform, and a test that passes."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import dagster as dg
from pydantic import BaseModel, Field

TRANSFORM = '''"""What becomes of orders. Change it, then run its test."""

from decimal import Decimal

from pydantic import BaseModel
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline import each, fail, send


class Order(BaseModel):
    """What a message must look like; any other goes to the error queue."""

    OrderId: str
    Total: Decimal


def price(messages: DataFrame) -> DataFrame:
    """Sends an invoice with tax for each order; refuses orders without a total."""
    order = F.col("payload")
    good = order.Total > 0
    invoice = F.struct(order.OrderId.alias("OrderId"), (order.Total * 120 / 100).cast("decimal(12,2)").alias("Total"))
    return messages.select(
        "origin",
        each(
            send("{output}", json=invoice, when=good),
            fail("the order has no total", error_type="NoTotal", when=~good),
        ),
    )
'''
TEST = '''"""The transform, without a database: messages in, results out."""

from queue_pipeline import QueuePipeline
from queue_pipeline.testing import run_transform

from {module} import Order, price

PIPELINE = QueuePipeline(
    name="{name}", input_queue="{input}", output_queues=["{output}"], transform=price, body_schema=Order
)


def test_orders_become_invoices_and_one_without_a_total_fails(queue_spark):
    orders = [{{"OrderId": "A-1", "Total": 100}}, {{"OrderId": "A-2", "Total": 0}}]
    result = run_transform(PIPELINE, orders, spark=queue_spark)
    assert result.bodies("{output}") == [{{"OrderId": "A-1", "Total": 120.0}}]
    assert [failed.error_type for failed in result.failures] == ["NoTotal"]
'''


class ScaffoldParams(BaseModel):
    """The options of `dg scaffold`."""

    input_queue: str = Field(default="orders", description="the queue to read")
    output_queue: str = Field(default="invoices", description="the queue to send results to")
    database: str | None = Field(default=None, description="the environment variable that holds the database's URL")


class QueuePipelinesScaffolder(dg.Scaffolder[ScaffoldParams]):
    """Writes a pipeline that works, to be changed."""

    @classmethod
    def get_scaffold_params(cls) -> type[ScaffoldParams]:
        """The options of `dg scaffold defs`."""
        return ScaffoldParams

    def scaffold(self, request: dg.ScaffoldRequest[ScaffoldParams]) -> None:
        """Write the files."""
        params, folder = request.params or ScaffoldParams(), request.target_path
        name = _identifier(folder.name)
        attributes: dict[str, Any] = {} if params.database is None else {"database": params.database}
        attributes |= {
            "prefix": name,
            "pipelines": [
                {
                    "name": _identifier(params.input_queue),
                    "input_queue": params.input_queue,
                    "output_queues": [params.output_queue],
                    "transform": ".transform.price",
                    "body_schema": ".transform.Order",
                }
            ],
        }
        folder.mkdir(parents=True, exist_ok=True)
        dg.scaffold_component(request, attributes)
        (folder / "transform.py").write_text(TRANSFORM.replace("{output}", params.output_queue), encoding="utf-8")
        tests, module = _test_place(request, folder)
        tests.mkdir(parents=True, exist_ok=True)
        text = TEST.format(
            module=module, name=_identifier(params.input_queue), input=params.input_queue, output=params.output_queue
        )
        (tests / f"test_{name}.py").write_text(text, encoding="utf-8")


def _test_place(request: dg.ScaffoldRequest[ScaffoldParams], folder: Path) -> tuple[Path, str]:
    """Where the test goes and how it names the transform: the project's tests/, with the module from the root on."""
    root = request.project_root
    if root is None:
        return folder, "transform"
    parts = list(folder.absolute().relative_to(root.absolute()).parts)
    return root / "tests", ".".join([*(parts[1:] if parts[0] == "src" else parts), "transform"])


def _identifier(text: str) -> str:
    name = re.sub(r"[^a-z0-9]+", "_", text.lower()).strip("_")
    return name if name[:1].isalpha() else f"queue_{name}"
