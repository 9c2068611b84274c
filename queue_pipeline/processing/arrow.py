"""Arrow as this layer uses it. The stubs of its compute functions know half of their signatures: they are left out."""

from __future__ import annotations

from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.compute
from pyspark.sql.pandas.types import from_arrow_schema
from pyspark.sql.types import StructType

Array: TypeAlias = Any
"""An array, or several in a row."""
Table: TypeAlias = Any

compute: Any = pyarrow.compute


def spark_schema(schema: pa.Schema) -> StructType:
    """The same columns in Spark; a time without a zone stays without one."""
    return from_arrow_schema(schema, prefer_timestamp_ntz=True)


_KEPT_MILLISECONDS = 600_000


def keep_memory() -> None:
    """Let Arrow keep freed memory for the next batch, for a process that works on many of them.

    Arrow's usual allocator gives memory back to the system at once, which clears it again for every batch: 6 to 8 of 45
    microseconds of the run's processor time a message in the worked example.
    """
    if "jemalloc" in pa.supported_memory_backends():
        pa.set_memory_pool(pa.jemalloc_memory_pool())
        pa.jemalloc_set_decay_ms(_KEPT_MILLISECONDS)
