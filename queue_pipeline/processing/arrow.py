"""Arrow as this layer uses it. The stubs of its compute functions know half of their signatures: they are left out."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow.compute

Array: TypeAlias = Any
"""An array, or several in a row."""
Table: TypeAlias = Any

compute: Any = pyarrow.compute
