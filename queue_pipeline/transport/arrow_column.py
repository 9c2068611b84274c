"""A column of texts or bytes that stays as Arrow has it, and looks like a sequence to whoever wants its values."""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import pyarrow as pa

T = TypeVar("T", str, bytes)
_SMALLER: dict[Any, Any] = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


class ArrowColumn(Sequence[T], Generic[T]):
    """Values without an object each, until somebody asks for one; none of them is null."""

    def __init__(self, array: Any) -> None:
        if array.null_count:
            raise ValueError(f"{array.null_count} of {len(array)} values are null; fill them first")
        whole = array.combine_chunks() if isinstance(array, pa.ChunkedArray) else array
        self.array: Any = whole.cast(_SMALLER[whole.type]) if whole.type in _SMALLER else whole

    @property
    def kind(self) -> type:
        """What its values are: str or bytes."""
        return str if pa.types.is_string(self.array.type) else bytes

    def holds(self, *needles: bytes) -> bool:
        """Whether one of these stands somewhere in the values; looked for in all of them at once."""
        _, places, data = self.array.buffers()
        if not len(self) or data is None:
            return False
        offsets = np.frombuffer(places, np.int32)
        first, last = offsets[self.array.offset], offsets[self.array.offset + len(self)]
        content = data.slice(first, last - first).to_pybytes()
        return any(needle in content for needle in needles)

    @functools.cached_property
    def _values(self) -> list[T]:
        return list(self.array.to_pylist())

    def __len__(self) -> int:
        return len(self.array)

    @overload
    def __getitem__(self, at: int) -> T: ...
    @overload
    def __getitem__(self, at: slice) -> list[T]: ...
    def __getitem__(self, at: int | slice) -> T | list[T]:
        return self._values[at]

    def __iter__(self) -> Iterator[T]:
        return iter(self._values)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._values == list(other)

    __hash__ = None  # type: ignore[assignment]
