"""Spark as a Dagster resource: dagster-pyspark's lazy one, made ready for whatever it is pointed at."""

from __future__ import annotations

import contextlib
import threading
from typing import Any

from dagster_pyspark import LazyPySparkResource
from dagster_spark import utils
from pydantic import PrivateAttr

from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.spark.session import start_session

flatten: Any = utils.flatten_dict
_building = threading.Lock()


class SparkResource(LazyPySparkResource):
    """A session that is started when the first batch needs it: an empty queue never starts a JVM.

    `spark_config` is any of Spark's properties: `spark.master`, or `spark.remote` for Spark Connect.
    """

    _interrupted: bool = PrivateAttr(default=False)

    @property
    def properties(self) -> dict[str, str]:
        """Spark's properties, by their full names."""
        return {key: str(value) for key, value in flatten(self.spark_config)}

    def _init_session(self) -> None:
        with _building:
            if self._spark_session is not None:
                return
            if self._interrupted:
                raise SparkUnavailableError("the run was terminated before Spark was needed")
            self._spark_session = start_session(self.properties)

    def interrupt(self) -> None:
        """Stop what is being computed, for a run that is terminated."""
        self._interrupted = True
        session: Any = self._spark_session
        if session is not None:
            # The run ends either way; a server that is gone has nothing left to stop.
            with contextlib.suppress(Exception):
                session.interruptAll()
