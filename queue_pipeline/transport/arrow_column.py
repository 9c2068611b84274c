"""A column of texts or bytes that stays as Arrow has it, and looks like a sequence to whoever wants its values."""

from __future__ import annotations

import binascii
import functools
from collections.abc import Iterator, Sequence
from typing import Any, Generic, TypeVar, overload

import numpy as np
import pyarrow as pa

T = TypeVar("T", str, bytes)
_SMALLER: dict[Any, Any] = {pa.large_string(): pa.string(), pa.large_binary(): pa.binary()}


_SEARCHED_AT_ONCE = 256 * 1024
"""Bytes that stay in a processor's cache; a copy of them all would be cleared by the system first."""
_GROUPS = ((0, 8, 0), (8, 12, 9), (12, 16, 14), (16, 20, 19), (20, 32, 24))
"""Of a UUID: its digits from and to, and where they begin in its text."""
_UUID_TEXT = 36


def uuid_texts(ids: bytes) -> Any:
    """UUIDs of sixteen bytes each as an array of their texts."""
    digits = np.frombuffer(binascii.hexlify(ids), np.uint8).reshape(-1, 32)
    texts = np.full((len(digits), _UUID_TEXT), ord("-"), np.uint8)
    for first, last, place in _GROUPS:
        texts[:, place : place + last - first] = digits[:, first:last]
    return texts_of_one_length(texts)


def texts_of_one_length(characters: Any) -> Any:
    """The rows of a table of bytes as an array of texts, each of all its columns."""
    count, width = characters.shape
    ends = np.arange(count + 1, dtype=np.int32) * np.int32(width)
    content: Any = np.ascontiguousarray(characters)
    return pa.Array.from_buffers(pa.string(), count, [None, pa.py_buffer(ends.tobytes()), pa.py_buffer(content)])


def any_holds(column: Any, needle: bytes) -> bool:
    """Whether a text stands somewhere in a column, in chunks or not; to search each value would take longer."""
    chunks = column.chunks if isinstance(column, pa.ChunkedArray) else [column]
    return any(ArrowColumn(chunk).holds(needle) for chunk in chunks)


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
        content = np.frombuffer(data, np.uint8)[first:last]
        single = [needle for needle in needles if len(needle) == 1]
        if any((content == ord(needle)).any() for needle in single):
            return True
        if len(single) == len(needles):
            return False
        overlap = max(map(len, needles)) - 1
        for start in range(0, len(content), _SEARCHED_AT_ONCE):
            text = content[start : start + _SEARCHED_AT_ONCE + overlap].tobytes()
            if any(needle in text for needle in needles):
                return True
        return False

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
