"""Files and folders that only their user may look into: messages and secrets lie in them."""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from queue_pipeline.errors import ConfigurationError

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def make_private_folder(path: Path) -> None:
    """Create a folder, and what is missing above it, for this user alone; what exists keeps its mode."""
    for folder in reversed([each for each in (path, *path.parents) if not each.is_dir()]):
        folder.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)


def make_private_file(path: Path) -> None:
    """Create an empty file for this user alone; an existing one keeps its mode and what it holds.

    An existing file is not opened: to close it would release the locks that SQLite holds on it in this process, and
    another process would take itself for the last user of the database and remove its log.
    """
    with suppress(FileExistsError):
        os.close(os.open(os.path.realpath(path), os.O_CREAT | os.O_EXCL | os.O_RDWR, PRIVATE_FILE))


def write_private_file(path: Path, text: str) -> None:
    """Write a file that only this user can read, whole or not at all."""
    fresh = path.with_name(f"{path.name}.new")
    fresh.unlink(missing_ok=True)
    make_private_file(fresh)
    fresh.write_text(text, encoding="utf-8")
    os.replace(fresh, path)


def user_folder() -> Path:
    """The folder of this user among the machine's temporary files; another user cannot have made it."""
    path = Path(tempfile.gettempdir()) / f"queue_pipeline-{os.geteuid()}"
    with suppress(FileExistsError):
        path.mkdir(mode=PRIVATE_FOLDER)
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or stat.S_IMODE(found.st_mode) & 0o077:
        raise ConfigurationError(
            f"{path} is not a folder of this user alone; remove it, or name another temporary folder by TMPDIR"
        )
    return path


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A private folder for as long as the block lasts; a process that is killed leaves it to `sweep`."""
    with tempfile.TemporaryDirectory(prefix=prefix) as name:
        held = os.open(name, os.O_RDONLY)
        try:
            # Some network file systems lock no folders, for `sweep` neither.
            with suppress(OSError):
                fcntl.flock(held, fcntl.LOCK_EX)
            yield Path(name)
        finally:
            os.close(held)


def sweep(prefix: str) -> int:
    """Remove temporary folders of dead processes of this user, by their lock; returns how many."""
    removed = 0
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        with suppress(OSError):
            found = path.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and _is_left(path):
                shutil.rmtree(path)
                removed += 1
    return removed


def _is_left(path: Path) -> bool:
    folder = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(folder)
    return True
