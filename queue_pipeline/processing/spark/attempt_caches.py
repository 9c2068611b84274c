"""Caches of a transform end with its attempt: Spark shares its cache among sessions and never clears it."""

from __future__ import annotations

import contextlib
import uuid
from typing import Any

from pyspark import StorageLevel
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.spark.internals.patches import note_caches

_CACHES = "queue_pipeline_caches"
"""The attribute of a session that holds its `AttemptCaches`."""
_VIEW = "queue_pipeline_cached_"


class AttemptCaches:
    """Notes what is cached in one session, by frame or by name, from any thread."""

    def __init__(self, session: SparkSession) -> None:
        self._session: Any = session
        self._frames: list[DataFrame] = []
        self._views: list[str] = []
        self._is_by_name = False
        note_caches(lambda session: getattr(session, _CACHES, None))
        setattr(session, _CACHES, self)
        original = self._session.sql

        def sql(*query: Any, **named: Any) -> Any:
            if "cache" in f"{query}{named}".lower():
                self.note_name()
            return original(*query, **named)

        self._session.sql = sql  # type: ignore[method-assign]

    def note_name(self, name: str = "") -> None:
        """Note that a view is cached by its name."""
        self._is_by_name |= not name.startswith(_VIEW)

    def persist(self, frame: Any, original: Any, level: StorageLevel) -> Any:
        """Cache a frame so that it can be found again.

        A Connect server finds a cached frame by its plan, which it makes anew; with a random seed the plan differs. A
        view is analysed once.
        """
        if is_remote():
            view = f"{_VIEW}{uuid.uuid4().hex}"
            # A frame with two columns of one name can be no view.
            with contextlib.suppress(AnalysisException):
                frame.createTempView(view)
                self._views.append(view)
                self._session.catalog.cacheTable(view, level)
                return frame
        self._frames.append(frame)
        return original(frame, level)

    def end(self) -> None:
        """Have Spark forget all of it; nothing is asked of Spark if nothing was cached."""
        for frame in self._frames:
            frame.unpersist()
        views = list(self._views)
        if self._is_by_name:
            views = [table.name for table in self._session.catalog.listTables() if table.isTemporary]
        for view in views:
            self._session.catalog.uncacheTable(view)
