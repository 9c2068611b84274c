import pytest

from queue_pipeline.transport.dialects import DIALECTS
from queue_pipeline.transport.statements import sql_folder

WIDEST = 120


@pytest.mark.parametrize("dialect", sorted(DIALECTS))
def test_statements_on_nginn_queues_can_be_read_without_scrolling(dialect):
    files = sorted((sql_folder() / dialect / "nginn").glob("*.sql"))
    assert files
    wide = [file.name for file in files for line in file.read_text("utf-8").splitlines() if len(line) > WIDEST]
    assert wide == []
