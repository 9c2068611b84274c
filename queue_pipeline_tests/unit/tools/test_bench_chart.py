import json
import xml.etree.ElementTree as ElementTree

import pytest

from queue_pipeline_tests.benchmarks.chart import LABELS, VALUES, WIDTH, Bar, draw
from queue_pipeline_tests.benchmarks.charts import LATENCY, PIPELINE, SCALE, TRANSPORT, chart_of
from queue_pipeline_tests.benchmarks.report import Report
from queue_pipeline_tests.benchmarks.written import write

SVG = "{http://www.w3.org/2000/svg}"
BARS = [Bar("the limit", 80_000, "limit"), Bar("ours", 40_000, "ours"), Bar("one & <other>", 3)]


def widths(svg: str) -> dict[str, float]:
    rects = ElementTree.fromstring(svg).iter(f"{SVG}rect")
    return {rect.attrib["class"]: float(rect.attrib["width"]) for rect in rects}


def test_every_bar_has_its_label_and_its_value():
    texts = [text.text for text in ElementTree.fromstring(draw("Speed", "a note", BARS)).iter(f"{SVG}text")]
    assert texts[:2] == ["Speed", "a note"]
    assert texts[2:] == ["the limit", "80,000", "ours", "40,000", "one & <other>", "3"]


def test_bars_are_as_long_as_their_values_and_the_smallest_can_still_be_seen():
    found = widths(draw("Speed", "", BARS))
    assert found["limit"] == WIDTH - LABELS - VALUES
    assert found["ours"] == found["limit"] / 2
    assert found["peer"] == 1.0


def test_the_limit_is_marked_through_all_bars():
    (line,) = ElementTree.fromstring(draw("Speed", "", BARS)).iter(f"{SVG}line")
    assert line.get("x1") == line.get("x2") == f"{WIDTH - VALUES:.1f}"


def test_the_colours_suit_light_and_dark_pages():
    assert "prefers-color-scheme: dark" in draw("Speed", "", BARS)


def test_a_chart_of_nothing_is_still_a_picture():
    assert widths(draw("Speed", "", [])) == {}


@pytest.mark.parametrize(
    ("part", "group", "drawn"),
    [
        ("transport", "messages_per_s", TRANSPORT),
        ("pipeline", "messages_per_s", PIPELINE),
        ("all", "messages_per_s", PIPELINE),
        ("example", "messages_per_s", PIPELINE),
        ("scale", "messages_per_s", SCALE),
        ("latency", "latency_s", LATENCY),
    ],
)
def test_a_part_is_drawn_with_a_bar_for_each_of_its_figures(part, group, drawn):
    report = Report()
    report.add(group, "not drawn", [1.0])
    for number, name in enumerate(drawn):
        report.add(group, name, [number + 1.0])
    root = ElementTree.fromstring(chart_of(part, report))
    labels = [text.text for text in root.iter(f"{SVG}text")]
    assert [label for label, _ in drawn.values()] == labels[2::2]
    assert len(list(root.iter(f"{SVG}rect"))) == len(drawn)


def test_a_run_is_written_as_markdown_json_and_a_chart_and_a_quick_one_is_named_so(tmp_path):
    report = Report()
    report.add("messages_per_s", "move", [71_000.0])
    for quick, stem in ((True, "pipeline-quick"), (False, "pipeline")):
        paths = write(report, "pipeline", tmp_path / "new", quick=quick)
        assert {path.name for path in paths} == {f"{stem}.md", f"{stem}.json", f"{stem}.svg"}
        assert json.loads((tmp_path / "new" / f"{stem}.json").read_text()) == report.as_json()
        assert f"]({stem}.svg)" in (tmp_path / "new" / f"{stem}.md").read_text()
