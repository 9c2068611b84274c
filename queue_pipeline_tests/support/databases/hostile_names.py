"""Names of queues, schemas and catalogs, hostile ones among them."""

from __future__ import annotations

import re

import pytest
from hypothesis import strategies as st

from queue_pipeline.transport.database.dialects.postgresql import PostgreSql
from queue_pipeline.transport.database.dialects.sqlite import Sqlite
from queue_pipeline.transport.database.dialects.sqlserver import SqlServer

SQLGLOT_NAMES = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}


hostile = st.sampled_from(
    ["]", "[", '"', "'", "@", ".", ";", "--", "/*", "?", "%", "\\", "{queue}", " ", "😀", "]]", '""']
)


ordinary = st.characters(exclude_categories=["Cs", "Cc"])


names = st.lists(hostile | ordinary, min_size=1, max_size=8).map("".join).filter(lambda name: name.strip() != "")


optional_names = st.none() | names


# A schema or catalog wholly in brackets is the quoted form of another name (UT-10), so it does not come back.
names_not_in_brackets = names.filter(lambda name: not re.fullmatch(r"\[.*\]", name, re.DOTALL))


def is_sqlserver_table(name: str) -> bool:
    """An address of that family ends its table at the first "@"; "#" in front makes a table temporary."""
    return "@" not in name and not name.startswith("#")


dialects = pytest.mark.parametrize("dialect", [SqlServer(), PostgreSql(), Sqlite()], ids=lambda dialect: dialect.name)
