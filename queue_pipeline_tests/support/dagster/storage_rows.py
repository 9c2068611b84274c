"""How many rows Dagster's storage has, by table; all of its databases in a home on SQLite together."""

from __future__ import annotations

import sqlite3
from collections import Counter
from contextlib import closing
from pathlib import Path

_TABLES = "SELECT name FROM sqlite_master WHERE type = 'table'"


def storage_rows(home: Path) -> Counter[str]:
    """The rows of every table, added up over files."""
    counts: Counter[str] = Counter()
    for file in home.rglob("*.db"):
        with closing(sqlite3.connect(file)) as connection:
            for (table,) in connection.execute(_TABLES).fetchall():
                counts[table] += connection.execute(f'SELECT count(*) FROM "{table}"').fetchone()[0]
    return counts
