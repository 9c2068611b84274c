"""Lets Spark find the format `sql_queue`: it imports top-level modules named `pyspark_…` that have a `DefaultSource`.

Spark does so once in each driver or Connect server, for any `format(…)`, so that the package is loaded only by a query
that reads or writes a queue.
"""

from __future__ import annotations

import uuid
from typing import Any

from pyspark.sql.datasource import DataSource


class SqlQueue(DataSource):
    """The queues of the database that the environment of Spark's driver, or Connect server, names."""

    instance = ""

    def __new__(cls, options: dict[str, str]) -> Any:
        """The data source itself, which knows how to read and write."""
        from queue_pipeline.processing.source.source import environment_source

        return environment_source(cls.instance)(options)

    @classmethod
    def name(cls) -> str:
        """What it is called in `format(…)`."""
        return "sql_queue"


# A class that is no attribute of its module is pickled whole. So all processes of one Spark have the same `instance`,
# which distinguishes a stream from its start in another Spark.
DefaultSource = type("SqlQueueOfThisSpark", (SqlQueue,), {"instance": uuid.uuid4().hex[:8]})
