"""Reads from a plan whether every result stays in the partition of its message."""

from __future__ import annotations

import re

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


def is_narrow(plan: str) -> bool:
    """Whether all operators of a plan are known to be narrow; one that is not known is not."""
    lines = [line for line in plan.splitlines() if line.strip() and not line.startswith("==")]
    found = [_OPERATOR.match(line) for line in lines]
    return bool(found) and all(one is not None and one[1] in NARROW for one in found)
