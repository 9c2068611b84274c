"""The Spark of a run: shared with other runs, or its own for isolated batches."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any

from pyspark.sql import SparkSession

from queue_pipeline.processing.spark.internals.calls import can_connect, connect_to, driver_exit_code, end_session
from queue_pipeline.processing.spark.own_server import OwnServer, cause_of_exit
from queue_pipeline.processing.spark.session import give_up_soon, prepare_environment


class RunSpark:
    """Sessions of the shared Spark; for an isolated batch, of a server that only this batch uses.

    A driver inside of the run is its own already; a server at an address cannot be started anew.
    """

    def __init__(self, shared: Callable[[], SparkSession], config: Mapping[str, str]) -> None:
        """`shared` gives the session of the run with these properties; it is started when it is first asked for."""
        self._shared = shared
        self._config = config
        self._is_isolated = False
        self._server: OwnServer | None = None
        self._session: SparkSession | None = None

    @property
    def can_restart(self) -> bool:
        """Whether a new Spark can take the place of one that died, in this process."""
        return self._is_isolated and self._has_own_server

    def session(self) -> SparkSession:
        """The session that attempts are made from."""
        if not self.can_restart:
            return self._shared()
        if self._session is None:
            # One that was started and took no session.
            self.close()
            prepare_environment()
            self._server = OwnServer(self._config)
            self._session = connect_to(self._server.address, self._config)
            give_up_soon(self._session)
        return self._session

    def isolate(self, is_isolated: bool) -> None:
        """Choose the Spark of the next batch; an isolated batch must be the only one in work."""
        if self._is_isolated and not is_isolated:
            self.close()
        self._is_isolated = is_isolated

    def what_ended_it(self) -> str:
        """Why Spark is gone, as far as that is known here."""
        if self._server is not None:
            return self._server.what_ended_it()
        code = driver_exit_code()
        return "its server does not answer" if code is None else cause_of_exit(code)

    def close(self) -> None:
        """End the server of this run's own, if there is one; the next isolated batch gets a new one."""
        session: Any = self._session
        server, self._server, self._session = self._server, None, None
        if server is not None:
            server.end()
        if session is not None:
            with contextlib.suppress(Exception):
                end_session(session)

    @property
    def _has_own_server(self) -> bool:
        is_reused = self._config.get("spark.local.connect.reuse", os.environ.get("SPARK_LOCAL_CONNECT_REUSE", ""))
        is_warm = self._config.get("spark.remote", "").startswith("local") and is_reused.lower() in ("1", "true")
        return is_warm and can_connect()
