"""Files of the project: no address of a registry, no path of one machine, scripts that can be executed."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Assembled from parts, so that this file passes its own check.
_HOSTS = ("pypi" + ".org", "python" + "hosted", "registry." + "npmjs", "deb." + "debian")
_FOLDERS = ("wo" + "rk", "fa" + "rm", "ro" + "ot", r"ho" + r"me/\w+", "Us" + r"ers/\w+")
FOREIGN = re.compile("|".join(map(re.escape, _HOSTS)) + r"|(?<![\w.{}])/(?:" + "|".join(_FOLDERS) + r")(?:/|\b)")


def find_foreign_paths() -> Iterator[str]:
    """Lines that name a package registry or a folder of one machine; needs a git checkout."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listing = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    for name in filter(None, listing.stdout.split("\0")):
        try:
            text = (ROOT / name).read_text(encoding="utf-8")
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue  # an image, or a file that is deleted and not committed yet
        for number, line in enumerate(text.splitlines(), 1):
            if FOREIGN.search(line):
                yield f"{name}:{number}: names a package registry or a path of one machine: {line.strip()}"


def find_scripts_that_cannot_run() -> Iterator[str]:
    """Scripts without the permission to be executed."""
    for path in [ROOT / ".ci" / "run", *(ROOT / "scripts").iterdir()]:
        if path.is_file() and not path.stat().st_mode & 0o111:
            yield f"{path.relative_to(ROOT)}: is not executable; run: chmod +x"
