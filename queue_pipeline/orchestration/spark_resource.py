"""Spark as a Dagster resource: dagster-pyspark's lazy one, made ready for whatever it is pointed at."""

from __future__ import annotations

import contextlib
import logging
import threading
import warnings
from typing import Any

from dagster_pyspark import LazyPySparkResource
from dagster_spark import utils
from pydantic import PrivateAttr

from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.results.exceptions import describe, in_a_line
from queue_pipeline.processing.spark.connect_retries import give_up_soon
from queue_pipeline.processing.spark.folder import private_folders
from queue_pipeline.processing.spark.session import check_reachable, prepare_environment
from queue_pipeline.processing.spark.warm_server import starts_beside

flatten: Any = utils.flatten_dict
_building = threading.Lock()
logger = logging.getLogger(__name__)


def _tell_of_others(config: dict[str, str]) -> None:
    """A server takes two gigabytes: say so when one more is about to be started."""
    for other in starts_beside(config):
        logger.warning(
            "a Spark server of yours is warm for %s (process %d); this project and setting get one of their own; "
            "end the other with: %s",
            other.project,
            other.pid,
            other.how_to_end,
        )


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
            config = self.properties
            prepare_environment()
            check_reachable(config)
            _tell_of_others(config)
            with private_folders(config), warnings.catch_warnings():
                # Properties of the server itself can only be given by the run that starts it; later ones get a warning.
                warnings.filterwarnings("ignore", message=r"(?s)Failed to set .*CANNOT_MODIFY_")
                warnings.filterwarnings("ignore", category=FutureWarning)
                self._start()
            give_up_soon(self._spark_session)

    def _start(self) -> None:
        """Start Spark, or a session on it. Whatever is raised here, no message causes it."""
        try:
            super()._init_session()
        except Exception as error:
            self._spark_session = None
            raise SparkUnavailableError(
                f"Spark cannot be started ({in_a_line(describe(error))}); see what Java wrote to the log of the run, "
                "check QUEUE_PIPELINE_SPARK and QUEUE_PIPELINE_SPARK_CONF (spark_config of the spark resource: memory, "
                "ports, names of properties) and the space on disk"
            ) from error

    def interrupt(self) -> None:
        """Stop what is being computed, for a run that is terminated."""
        self._interrupted = True
        session: Any = self._spark_session
        if session is not None:
            # The run ends either way; a server that is gone has nothing left to stop.
            with contextlib.suppress(Exception):
                session.interruptAll()
