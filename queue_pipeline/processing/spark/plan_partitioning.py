"""Tells from a plan whether every result stays in the partition of its message."""

from __future__ import annotations

import re
from typing import Any

from pyspark.sql import DataFrame

NARROW = frozenset(
    {
        "ArrowEvalPython",
        "BatchEvalPython",
        "BatchScan",
        "CollectMetrics",
        "ColumnarToRow",
        "Filter",
        "Generate",
        "MapInArrow",
        "MapInPandas",
        "Project",
        "PythonMapInArrow",
        "Range",
        "RowToColumnar",
    }
)
"""Operators that work on one partition at a time and leave rows in theirs."""
_OPERATOR = re.compile(r"^[\s:+\-|]*(?:\*\(\d+\)\s*)?([A-Za-z]+)")


def physical_plan(frame: DataFrame) -> str:
    """What Spark would do to compute a frame."""
    described: Any = frame
    if hasattr(described, "_explain_string"):
        return str(described._explain_string(extended=False))
    return str(described._jdf.queryExecution().explainString(_simple_mode(described)))


def is_narrow(plan: str) -> bool:
    """Whether all operators of a plan are known to be narrow; one that is not known is not."""
    lines = [line for line in plan.splitlines() if line.strip() and not line.startswith("==")]
    found = [_OPERATOR.match(line) for line in lines]
    return bool(found) and all(one is not None and one[1] in NARROW for one in found)


def _simple_mode(frame: Any) -> Any:
    return frame._sc._jvm.org.apache.spark.sql.execution.ExplainMode.fromString("simple")
