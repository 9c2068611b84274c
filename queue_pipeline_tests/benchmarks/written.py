"""A report as files: Markdown to read, JSON to compare, a chart to look at."""

from __future__ import annotations

import json
from pathlib import Path

from queue_pipeline_tests.benchmarks.charts import chart_of
from queue_pipeline_tests.benchmarks.plan import say
from queue_pipeline_tests.benchmarks.rendering import as_markdown
from queue_pipeline_tests.benchmarks.report import Report

DOCUMENTS = Path(__file__).parents[2] / "docs" / "benchmarks"


def write(report: Report, part: str, folder: Path, *, quick: bool) -> list[Path]:
    """Write the three; what a quick run found is named so, and git ignores it."""
    folder.mkdir(parents=True, exist_ok=True)
    stem = f"{part}-quick" if quick else part
    texts = {
        ".json": json.dumps(report.as_json(), indent=2) + "\n",
        ".svg": chart_of(part, report),
        ".md": as_markdown(report, part, f"{stem}.svg"),
    }
    paths = [folder / f"{stem}{suffix}" for suffix in texts]
    for path, text in zip(paths, texts.values(), strict=True):
        path.write_text(text, encoding="utf-8")
    say(f"wrote {folder / stem}.md, .json and .svg")
    return paths
