"""A receive hands out what its own UPDATE changed, and nothing that it only looked at."""

import re

import pytest

from queue_pipeline.transport.database.statements import load_statement


@pytest.mark.parametrize("dialect", ["postgresql", "sqlite"])
def test_the_update_returns_the_messages_itself(dialect):
    text = load_statement(dialect, "nginn/queue.receive")
    assert text.index("UPDATE") < text.index("RETURNING") < text.index("msg_text")


def test_on_sql_server_the_messages_are_joined_with_what_the_update_put_out():
    """Update locks at the read are not enough: some servers ignore them."""
    *_, update, handed_out = load_statement("sqlserver", "nginn/queue.receive").strip().rstrip(";").split(";")
    (taken,) = re.findall(r"OUTPUT inserted\.id INTO (@\w+)", update)
    assert "subqueue = 'I'" in update
    assert f"INNER JOIN {taken} AS t ON t.id = q.id" in handed_out
