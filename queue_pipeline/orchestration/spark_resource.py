"""Spark as a Dagster resource: dagster-pyspark's lazy one, made ready for whatever it is pointed at."""

from __future__ import annotations

import threading
import warnings
from typing import Any

from dagster_pyspark import LazyPySparkResource
from dagster_spark import utils

from queue_pipeline.processing.spark_session import check_reachable, prepare_environment

flatten: Any = utils.flatten_dict
_building = threading.Lock()


class SparkResource(LazyPySparkResource):
    """A session that is started when the first batch needs it: an empty queue never starts a JVM.

    `spark_config` is any of Spark's properties: `spark.master`, or `spark.remote` for Spark Connect.
    """

    def _init_session(self) -> None:
        with _building:
            if self._spark_session is not None:
                return
            config = {key: str(value) for key, value in flatten(self.spark_config)}
            prepare_environment()
            check_reachable(config)
            with warnings.catch_warnings():
                # Properties of the server itself can only be given by the run that starts it; later ones are told so.
                warnings.filterwarnings("ignore", message=r"(?s)Failed to set .*CANNOT_MODIFY_CONFIG")
                warnings.filterwarnings("ignore", category=FutureWarning)
                super()._init_session()

    @property
    def is_started(self) -> bool:
        """Whether a session was needed so far."""
        return self._spark_session is not None

    def interrupt(self) -> None:
        """Stop what is being computed, for a run that is terminated."""
        session: Any = self._spark_session
        if session is None:
            return
        if hasattr(session, "interruptAll"):
            session.interruptAll()
