"""The page that explains keys of metadata has every key, with the words that the code has."""

from pathlib import Path

import pytest

from queue_pipeline.orchestration import glossary

PAGE = Path(__file__).parents[3] / "docs" / "metadata.md"


@pytest.mark.parametrize("keys", [glossary.RUN_REPORT, glossary.RUN_SUMS, glossary.QUEUE, glossary.CHECKS])
def test_every_key_is_on_the_page_in_order(keys):
    rows = "\n".join(f"| `{key}` | {meaning} |" for key, meaning in keys.items())
    assert rows in PAGE.read_text(), f"put these rows into docs/metadata.md:\n{rows}"


def test_no_other_key_is_on_the_page():
    known = {*glossary.RUN_REPORT, *glossary.RUN_SUMS, *glossary.QUEUE, *glossary.CHECKS}
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    assert {line.split("`")[1] for line in rows} == known
