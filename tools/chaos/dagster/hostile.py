"""What hostile messages have done to them: each says what the transform, Spark or its Python worker has to suffer."""

from __future__ import annotations

import ctypes
import os
import sys
import time
from collections.abc import Callable, Mapping

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from queue_pipeline.processing.declaration.outcomes import each, send
from tools.chaos.dagster.plan import (
    DIE,
    EXIT,
    HANG,
    HOSTILE_RESULTS,
    LONG_TEXT,
    MEMORY,
    SEGFAULT,
    SETTING,
    STOP_SPARK,
    SYSTEM_EXIT,
    VALUE_ERROR,
    VIEW,
)

_LONG_TEXT_BYTES = 60_000_000
_TIMES = 1 << 28
"""So often a word of six letters is 1.6 GB."""
_SETTINGS = {
    "spark.sql.session.timeZone": "America/New_York",
    "spark.sql.ansi.enabled": "false",
    "spark.sql.caseSensitive": "true",
}


def obey(messages: DataFrame) -> DataFrame:
    """Do what the messages of the batch ask for, then send each of them on."""
    messages.createOrReplaceTempView("messages")
    wanted = {row.action for row in messages.select("payload.action").distinct().collect()}
    for action, act in _IN_TRANSFORM.items():
        if action in wanted:
            act(messages)
    found = messages.sparkSession.sql("SELECT origin, payload FROM messages") if VIEW in wanted else messages
    asked = F.col("payload")
    suffered = F.udf(suffer, "string")(asked.action)
    result = F.struct(asked.number, asked.action, suffered.alias("suffered"))
    return found.select("origin", each(send(HOSTILE_RESULTS, json=result)))


def suffer(action: str) -> str:
    """Runs in a Python worker of Spark."""
    if action in _IN_WORKER:
        _IN_WORKER[action]()
    return action


def _raise_value_error(messages: DataFrame) -> None:
    raise ValueError("a message asked for an error")


def _raise_system_exit(messages: DataFrame) -> None:
    raise SystemExit(3)


def _raise_long_text(messages: DataFrame) -> None:
    raise ValueError("x" * _LONG_TEXT_BYTES)


def _stop_spark(messages: DataFrame) -> None:
    messages.sparkSession.stop()


def _change_settings(messages: DataFrame) -> None:
    for name, value in _SETTINGS.items():
        messages.sparkSession.conf.set(name, value)


def _replace_views(messages: DataFrame) -> None:
    """Other names than the one that this transform reads itself."""
    for name in ("orders", "billing", "payload"):
        messages.sparkSession.range(3).createOrReplaceTempView(name)


def _fill_memory(messages: DataFrame) -> None:
    """More than Spark's heap: Java ends."""
    messages.select(F.max(F.repeat(F.col("payload.action"), F.lit(_TIMES)))).collect()


def _die() -> None:
    os._exit(17)


def _crash() -> None:
    ctypes.string_at(0)


def _hang() -> None:
    while True:
        time.sleep(1)


_IN_TRANSFORM: Mapping[str, Callable[[DataFrame], None]] = {
    VIEW: _replace_views,
    SETTING: _change_settings,
    VALUE_ERROR: _raise_value_error,
    SYSTEM_EXIT: _raise_system_exit,
    LONG_TEXT: _raise_long_text,
    STOP_SPARK: _stop_spark,
    MEMORY: _fill_memory,
}
_IN_WORKER: Mapping[str, Callable[[], object]] = {EXIT: sys.exit, DIE: _die, SEGFAULT: _crash, HANG: _hang}
