"""The project's own code: which modules a process has loaded, and whether their files are still what it loaded."""

from __future__ import annotations

import hashlib
import importlib
import logging
import os
import site
import sys
import sysconfig
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

LONGEST_IMPORT_SECONDS = 60.0
"""How long before the first look at a module its file may have been read."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file as a process found it when it first looked."""

    path: str
    state: tuple[int, ...]
    """While this is the same, so is the content."""
    digest: bytes


class SourceCode:
    """The files of the loaded modules that belong to the project: not installed, or of the named packages."""

    def __init__(self, packages: Iterable[str] = ()) -> None:
        """Look at the files for the first time: right after the project was imported is the best moment."""
        self.loaded_at = time.time()
        self.uncertain: str | None = None
        """A module whose file was written between the last look without it and the first with it: either version may
        be the loaded one."""
        self._packages = frozenset(packages)
        self._last_look = _started()
        self._files: dict[str, SourceFile] = {}
        self._looked_at: set[str] = set()
        self.look()
        self.fingerprint = self._fingerprint()
        """The same in all processes that loaded the same code."""

    def change(self) -> str | None:
        """A module whose file is no longer what was loaded, or None. A file that was only touched is unchanged.

        It costs some microseconds per module, and is called before every batch.
        """
        self.look()
        for module, known in self._files.items():
            try:
                found = os.stat(known.path)
                if _state(found) == known.state:
                    continue
                if _digest(known.path) != known.digest:
                    return module
            except OSError:
                return module
            self._files[module] = SourceFile(known.path, _state(found), known.digest)
        return None

    def changed_at(self) -> float:
        """When the newest of this code came to be: the process loaded it, or a file was written."""
        moments = [self.loaded_at]
        for known in self._files.values():
            try:
                found = os.stat(known.path)
            except OSError:
                continue
            # Copies that keep the time of the original have a later time of their inode.
            moments.append(max(found.st_mtime, found.st_ctime))
        return max(moments)

    def forget(self) -> None:
        """Unload the project's modules: the next import reads the files as they are now."""
        for module in self._files.keys() - {"__main__"}:
            sys.modules.pop(module, None)
        importlib.invalidate_caches()
        self._files.clear()
        self._looked_at, self.uncertain = set(sys.modules), None
        self._last_look = time.time()

    def look(self) -> None:
        """Note the files of modules that were loaded since the last time."""
        if len(sys.modules) == len(self._looked_at):
            self._last_look = time.time()
            return
        for module, path in self._project_modules(sys.modules.keys() - self._looked_at):
            try:
                found, digest = os.stat(path), _digest(path)
            except OSError:
                # Inside of an archive, or gone already: no file that could be edited.
                continue
            self._files[module] = SourceFile(path, _state(found), digest)
            if max(self._last_look, time.time() - LONGEST_IMPORT_SECONDS) < found.st_mtime <= time.time():
                self.uncertain = module
        self._looked_at = set(sys.modules)
        self._last_look = time.time()

    def _project_modules(self, names: Iterable[str]) -> Iterator[tuple[str, str]]:
        installed = _installed_folders()
        for name in sorted(names):
            path = getattr(sys.modules.get(name), "__file__", None)
            if not isinstance(path, str) or not path.endswith(".py"):
                continue
            if name.partition(".")[0] in self._packages or not _is_within(path, installed):
                yield name, os.path.abspath(path)

    def _fingerprint(self) -> str:
        parts = (f"{module} {known.digest.hex()}\n" for module, known in sorted(self._files.items()))
        return hashlib.sha256("".join(parts).encode()).hexdigest()[:12]


def _state(found: os.stat_result) -> tuple[int, ...]:
    # A release that is switched by a link may have files of the same time and size.
    return found.st_mtime_ns, found.st_size, found.st_ino, found.st_dev


def _digest(path: str) -> bytes:
    return hashlib.sha256(Path(path).read_bytes()).digest()


def _started() -> float:
    """The start time of this process, as the logging module recorded it."""
    record = logging.makeLogRecord({})
    return record.created - record.relativeCreated / 1000


def _installed_folders() -> tuple[str, ...]:
    paths = sysconfig.get_paths()
    known = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    known += [*site.getsitepackages(), site.getusersitepackages()]
    return tuple({f"{folder}{os.sep}" for one in known for folder in (one, os.path.realpath(one))})


def _is_within(path: str, folders: tuple[str, ...]) -> bool:
    return path.startswith(folders) or os.path.realpath(path).startswith(folders)
