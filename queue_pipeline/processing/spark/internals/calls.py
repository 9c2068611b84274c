"""Private functions of PySpark that are called: the rows, plan and types of a frame, sessions and servers."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
from pyspark.errors import AnalysisException
from pyspark.sql import DataFrame, SparkSession

# Without these two no batch reaches Spark: a PySpark that lacks them fails at import.
from pyspark.sql.pandas.types import from_arrow_schema, to_arrow_schema
from pyspark.sql.types import StructType
from pyspark.sql.utils import is_remote

from queue_pipeline.processing.arrow import Table, usual_types
from queue_pipeline.processing.spark.internals.parts import (
    CLASSIC_ARROW,
    CLASSIC_PLAN,
    CLONE,
    CONNECT_ARROW,
    CONNECT_PLAN,
    CONNECT_SESSION,
    ENDPOINT,
    GATEWAY,
    LOCAL_FILE,
    LOCAL_SERVER,
    RETRIES,
)


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark; a time without a zone stays without one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


def arrow_schema(schema: StructType) -> pa.Schema:
    """The same columns in Arrow; times are in UTC."""
    return to_arrow_schema(schema, timezone="UTC")


def collected(frame: DataFrame) -> Table:
    """The rows of a frame as Spark returns them, with the usual types.

    `toArrow` needs one more request, and refuses a struct that is null where its fields are NOT NULL.
    """
    # Looked up on the class: a frame takes an unknown attribute for a column.
    if is_remote():
        to_table = CONNECT_ARROW.find(type(frame))
        return usual_types(frame.toArrow() if to_table is None else to_table(frame)[0])
    collect = CLASSIC_ARROW.find(type(frame))
    if collect is None:
        return usual_types(frame.toArrow())
    return usual_types(pa.Table.from_batches(collect(frame, empty_list_if_zero_records=False)))


def physical_plan(frame: DataFrame) -> str:
    """What Spark would do to compute a frame; empty if it is not known."""
    if is_remote():
        explain = CONNECT_PLAN.find(type(frame))
        return "" if explain is None else str(explain(frame, extended=False))
    execution = CLASSIC_PLAN.find(frame)
    return "" if execution is None else str(execution().executedPlan().toString())


def clone_session(base: Any) -> SparkSession:
    """A session with the settings of another one: `newSession` of a Connect client would start without them."""
    if not is_remote():
        clone = CLONE.find(base)
        copied: SparkSession = base.newSession() if clone is None else type(base)(base.sparkContext, clone())
        return copied
    session: Any = base.cloneSession()
    session.client.set_retry_policies(base.client.get_retry_policies())
    return session  # type: ignore[no-any-return]


def end_session(session: Any) -> None:
    """Free what the server keeps of a session. Not `stop()`, which would stop a local server or a classic context."""
    if is_remote():
        session.client.release_session()
        session.client.close()


def can_connect() -> bool:
    """Whether a session can be made with a server of this process's own, beside the session that it has."""
    return CONNECT_SESSION.find() is not None


def connect_to(address: str, config: Mapping[str, str]) -> SparkSession:
    """A session of a Connect server that is neither the active nor the default one of this process."""
    # What the builder of a session sets: `is_remote` asks for it.
    os.environ["SPARK_CONNECT_MODE_ENABLED"] = "1"
    session: Any = CONNECT_SESSION.find()(address)
    for name, value in config.items():
        # Those that hold for a whole server were given to it when it started, and are refused here.
        if name.startswith("spark.sql."):
            with contextlib.suppress(AnalysisException):
                session.conf.set(name, value)
    return session  # type: ignore[no-any-return]


def endpoint(session: Any) -> tuple[str, int] | None:
    """Host and port of the Connect server of a session."""
    found = ENDPOINT.find(session)
    host, _, port = str(found).rpartition(":")
    return None if found is None else (host, int(port))


def retry_while(session: Any, goes_on: Callable[[], bool], **limits: int) -> None:
    """Let the client of a Connect server try a request again while this holds, and within these limits."""
    policy = RETRIES.find()
    if policy is None:
        return

    class While(policy):  # type: ignore[misc, valid-type]
        def can_retry(self, exception: BaseException) -> bool:
            return bool(super().can_retry(exception)) and goes_on()

    session.client.set_retry_policies([While(**limits)])


def stop_local_server(discovery: str) -> bool | None:
    """Stop the warm server that a file names, and say whether there was one; None if that is not known."""
    file, server = LOCAL_FILE.find(), LOCAL_SERVER.find()
    if file is None or server is None:
        return None
    with file(discovery) as held:
        stopped: bool | None = server(held).stop()
        return stopped


def end_unknown_server(discovery: str, end: Callable[[int], None]) -> None:
    """End a warm server that no file describes. No process is starting it any more: a starter holds the file's lock."""
    file = LOCAL_FILE.find()
    if file is None:
        return
    with file(discovery) as held:
        pid = held.daemon_pid()
        if pid is not None and held.load() is None:
            end(pid)


def driver_exit_code() -> int | None:
    """How the JVM ended that is a classic driver inside of this process; None if it runs, or if there is none."""
    process = getattr(GATEWAY.find(), "proc", None)
    return None if process is None else process.poll()
