"""Amounts of memory as Spark spells them."""

from __future__ import annotations

import re

from tools.cluster.errors import ClusterError

_AMOUNT = re.compile(r"(\d+)([mg])b?", re.IGNORECASE)


def megabytes(amount: str) -> int:
    """How much that is: 1536m, 2g."""
    found = _AMOUNT.fullmatch(amount)
    if found is None:
        raise ClusterError(f"{amount!r} is no amount of memory; use for example 2g or 1536m")
    return int(found[1]) * (1024 if found[2].lower() == "g" else 1)
