"""docs/metadata.md explains every key that asset pages show, and no other."""

import re
from pathlib import Path

import pytest

from queue_pipeline.orchestration import checks, metadata
from queue_pipeline.transport.inspection.status import QueueStatus

PAGE = Path(__file__).parents[3] / "docs" / "metadata.md"


def keys(heading):
    """The keys of a section of the page."""
    section = PAGE.read_text().partition(f"## {heading}\n")[2].partition("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.M))


@pytest.mark.parametrize("nginn", [True, False], ids=["nginn", "nservicebus"])
def test_every_figure_of_a_queue_is_on_the_page(nginn):
    own = (5, 0, 20.0) if nginn else (None, None, None)
    shown = metadata.of_queue(QueueStatus("orders", 1, False, 1.0, 0, 1, 1.0, 1, 1, 0, *own))
    only_nginn = set() if nginn else {"latency_s", "processed_messages"}
    assert {*shown, "error_queue_messages"} == keys("Asset of a queue") - only_nginn


def test_every_key_of_the_checks_is_in_their_code():
    code = Path(checks.__file__).read_text()
    named = keys("Checks, beside keys from above")
    assert named and all(f'"{key}"' in code for key in named)
