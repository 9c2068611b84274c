"""One code location: two shops with a database each, and a job of the team's own."""

import dagster as dg
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline import QueuePipeline, QueueTransportResource, each, queue_definitions, send

TAX_PERCENT = {"vienna": 20, "berlin": 19}


def pipeline_of(shop: str) -> QueuePipeline:
    """The pipeline of one shop: orders become invoices with its tax."""

    def write_invoices(messages: DataFrame) -> DataFrame:
        order = messages.payload
        total = F.round(order.net * (100 + TAX_PERCENT[shop]) / 100, 2).alias("total")
        return messages.select("origin", each(send("invoices", json=F.struct(order.id, total))))

    return QueuePipeline(
        name="orders",
        input_queue="orders",
        output_queues=["invoices"],
        body_schema="id string NOT NULL, net decimal(12, 2) NOT NULL",
        transform=write_invoices,
        linger_seconds=0,
    )


@dg.op(required_resource_keys={f"{shop}_transport" for shop in TAX_PERCENT})
def count_invoices(context: dg.OpExecutionContext) -> None:
    """Count what each shop has invoiced, with the resources that its pipelines use."""
    for shop in TAX_PERCENT:
        resource: QueueTransportResource = getattr(context.resources, f"{shop}_transport")
        context.log.info(f"{shop}: {resource.transport().peek('invoices')} invoices")


@dg.job
def daily_report() -> None:
    """The team's own job; its name, executor and resources are its own business."""
    count_invoices()


defs = dg.Definitions.merge(
    *(
        queue_definitions([pipeline_of(shop)], database=dg.EnvVar(f"{shop.upper()}_QUEUES"), prefix=shop)
        for shop in TAX_PERCENT
    ),
    dg.Definitions(jobs=[daily_report]),
)
