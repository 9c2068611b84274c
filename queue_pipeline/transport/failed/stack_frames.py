"""Frames of a stack as .NET prints them: tools that group failures parse nothing else."""

from __future__ import annotations

import functools
import inspect
import os
import re
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from types import TracebackType

FRAME_MARK = "   at "
"""How the line of a frame begins."""
_MOST_FRAMES = 100
_LIBRARIES = re.compile(r"^.*(?:/site-packages/|/dist-packages/|\.zip/|\.egg/|\.whl/)")


@dataclass(frozen=True, slots=True)
class Frame:
    """A place in a program; `file` is empty where the code was never in one."""

    module: str
    function: str
    file: str
    line: int

    def __str__(self) -> str:
        place = f" in {self.file}:line {self.line}" if self.file else ""
        return f"{FRAME_MARK}{self.module}.{self.function}(){place}"

    @property
    def package(self) -> str:
        """The outermost package or module."""
        return self.module.partition(".")[0]


def frames_of(trace: TracebackType | None) -> list[Frame]:
    """The frames of a traceback, innermost first as .NET has them."""
    frames = []
    for frame, line in traceback.walk_tb(trace):
        code = frame.f_code
        module = frame.f_globals.get("__name__") or module_of(code.co_filename)
        frames.append(Frame(plain_name(str(module)), plain_name(code.co_qualname), _path(code.co_filename), line or 0))
    return frames[::-1]


def frame_at(file: str, line: int, function: str) -> Frame:
    """A frame of which no more is known than what a traceback prints."""
    return Frame(module_of(file), plain_name(function), _path(file), line)


def frame_of(code: object) -> Frame:
    """The frame of a function, a method or a class: where something was refused that raised nothing."""
    code = inspect.unwrap(code) if callable(code) else code
    while isinstance(code, functools.partial):
        code = code.func
    if not hasattr(code, "__qualname__"):
        code = type(code)
    try:
        file, line = inspect.getsourcefile(code) or "", inspect.findsource(code)[1] + 1  # type: ignore[arg-type]
    except (OSError, TypeError):
        file, line = "", 0
    module, name = getattr(code, "__module__", None), getattr(code, "__qualname__", type(code).__name__)
    return Frame(plain_name(str(module or "unknown")), plain_name(str(name)), _path(file) if file else "", line)


def trace_at(error_type: str, message: str, frames: Sequence[Frame]) -> str:
    """A stack trace as .NET prints it, of a failure that has these frames."""
    return "\n".join([f"{error_type}: {message}" if message else error_type, *frame_lines(frames)])


def module_of(file: str) -> str:
    """The name under which a file is most likely imported; the same that its frames have in this process."""
    inside = _LIBRARIES.sub("", file)
    if inside == file:
        roots = [os.path.join(os.path.abspath(path), "") for path in sys.path]
        above = [root for root in roots if root != os.sep and file.startswith(root)]
        inside = file.removeprefix(max(above, key=len)) if above else os.path.basename(file)
    name = os.path.splitext(inside)[0].strip(os.sep).replace(os.sep, ".").removesuffix(".__init__")
    return plain_name(name)


def plain_name(name: str) -> str:
    """A name without what no .NET name has: `f.<locals>.<lambda>` becomes `f.lambda`."""
    return re.sub(r"[^\w.]+", "_", name.replace("<locals>.", "").replace("<", "").replace(">", "")) or "unknown"


def frame_lines(frames: Sequence[Frame]) -> list[str]:
    """The frames as text; the middle of an endless recursion is left out."""
    lines = [str(frame) for frame in frames]
    left_out = len(lines) - _MOST_FRAMES
    if left_out > 0:
        half = _MOST_FRAMES // 2
        lines[half:-half] = [f"   --- {left_out} frames left out ---"]
    return lines


def _path(file: str) -> str:
    if file.startswith("<"):
        return ""
    return re.sub(r"[\x00-\x1f]", "_", os.path.abspath(file))
