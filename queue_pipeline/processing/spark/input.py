"""Hands a batch to Spark: as a file if Spark runs on this machine, else over the connection.

A file is written at once, and Spark reads its columns in parallel. Batches of 40,000 orders take 30 instead of 58 µs of
Java's processor time per message, and 24 instead of 33 µs here.
"""

from __future__ import annotations

import contextlib
import logging
import os
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.spark.internals.calls import spark_schema
from queue_pipeline.transport.private_files import make_private_file, sweep, temporary_folder

SMALLEST_FILE = 1024 * 1024
"""Fewer bytes are sent along with the query in one piece."""
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_FOLDER = "queue_pipeline-batch-"
_FILE = "batch.parquet"
_VIEW = "queue_pipeline_batch_"

logger = logging.getLogger(__name__)


class Handover:
    """Hands batches to one Spark; knows after the first one whether that Spark can read files of this process."""

    def __init__(self) -> None:
        self._reads_files: bool | None = None
        # Of processes that were killed: bodies of messages lie there.
        if left := sweep(_FOLDER):
            logger.info("removed %d batch files of processes that are gone", left)

    @contextlib.contextmanager
    def frame(self, spark: SparkSession, rows: pa.Table) -> Iterator[DataFrame]:
        """Rows as a frame of Spark's, for as long as the block lasts."""
        if rows.nbytes >= SMALLEST_FILE and self._is_here(spark):
            with contextlib.ExitStack() as stack:
                path = _written(rows, stack)
                if path is not None:
                    frame = spark.read.schema(spark_schema(rows.schema)).parquet(str(path))
                    if self._can_read(frame, rows.num_rows):
                        yield frame
                        return
        # A view: a Connect server would unpack the data again for every query. It ends with the session.
        view = f"{_VIEW}{uuid.uuid4().hex}"
        spark.createDataFrame(rows, spark_schema(rows.schema)).createTempView(view)
        yield spark.table(view)

    def _is_here(self, spark: SparkSession) -> bool:
        if self._reads_files is None:
            client: Any = spark.client if is_remote() else None
            is_elsewhere = client is not None and getattr(client, "host", "") not in _LOOPBACK
            if is_elsewhere or not (spark.conf.get("spark.master", "") or "").startswith("local"):
                self._reads_files = False
        return self._reads_files is not False

    def _can_read(self, frame: DataFrame, rows: int) -> bool:
        """Try the first file: a server behind a forwarded port has another disk or user."""
        if self._reads_files is None:
            try:
                self._reads_files = frame.count() == rows
            except PySparkException as error:
                logger.info("Spark cannot read files of this process; batches are sent to it instead: %s", error)
                self._reads_files = False
        return self._reads_files


def _written(rows: pa.Table, stack: contextlib.ExitStack) -> Path | None:
    """The file of the rows, removed with the stack; None if there is no room for it, which no message causes."""
    try:
        path = stack.enter_context(temporary_folder(_FOLDER)) / _FILE
        _write(rows, path)
    except OSError as error:
        logger.warning("a batch cannot be written to a file and is sent to Spark instead: %s", error)
        return None
    return path


def _write(rows: pa.Table, path: Path) -> None:
    """Plain columns: compression gains nothing for a file that lives for seconds."""
    make_private_file(path)
    most = max(1, -(-rows.num_rows // (os.cpu_count() or 1)))
    pq.write_table(rows, path, row_group_size=most, compression="none", use_dictionary=False, write_statistics=False)
