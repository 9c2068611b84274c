"""Private parts of PySpark: the installed version has them all, and one that is missing is reported."""

import logging
import pkgutil
import re
from pathlib import Path

import pyspark
import pytest
from pyspark.sql import SparkSession

import queue_pipeline
from queue_pipeline.processing.spark.internals import parts, patches
from queue_pipeline.processing.spark.internals.parts import (
    KNOWN_VERSIONS,
    PARTS,
    PrivatePart,
    check_version,
    missing_parts,
)

PACKAGE = Path(queue_pipeline.__file__).parent
PRIVATE = re.compile(
    r"pyspark\.(sql\.(connect|classic|pandas)\b|worker|daemon)"
    r"|\._(to_table|collect_as_arrow|explain_string|builder|active_session|set_all|gateway|returnType|jsparkSession"
    r"|jdf|jvm|jsc|sc|plan|sparkSession)\b"
)


@pytest.fixture(autouse=True)
def nothing_reported(monkeypatch):
    monkeypatch.setattr(parts, "_missing", {})
    # The suite's Spark sets it; with it, a module of the workers refuses to be imported here.
    monkeypatch.delenv("SPARK_TESTING", raising=False)
    check_version.cache_clear()


@pytest.mark.parametrize("part", [part for part in PARTS if ":" in part.where], ids=lambda part: part.where)
def test_the_installed_pyspark_has_the_part(part):
    # Before a driver is started in this process its gateway is None.
    assert pkgutil.resolve_name(part.where) is not None or part is parts.GATEWAY
    part.find()
    assert missing_parts() == {}


def test_a_classic_session_is_made_around_one_of_java():
    """The parts of a classic session exist once Java runs; a test on a classic Spark calls them."""
    assert "_jsparkSession" in SparkSession.__init__.__code__.co_names


def test_no_other_module_touches_a_private_part():
    found = [
        f"{path.relative_to(PACKAGE)}:{number}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        if not path.is_relative_to(PACKAGE / "processing/spark/internals")
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if PRIVATE.search(line) and '"pyspark.worker"' not in line and '"pyspark.daemon"' not in line
    ]
    assert found == []


@pytest.mark.parametrize(
    "part", [PrivatePart("pyspark.sql:nothing", "speed"), PrivatePart("pyspark.nowhere:Nothing", "speed")]
)
def test_a_missing_part_is_reported_once_with_what_is_lost(part, caplog):
    with caplog.at_level(logging.WARNING):
        assert [part.find(), part.find()] == [None, None]
    assert [record.message for record in caplog.records] == [
        f"PySpark {pyspark.__version__} has no {part.where}: speed"
    ]
    assert missing_parts() == {part.where: "speed"}


def test_an_attribute_that_an_object_lacks_is_reported(caplog):
    with caplog.at_level(logging.WARNING):
        assert PrivatePart("_client.address", "speed").find(object()) is None
    assert missing_parts() == {"_client.address": "speed"}


def test_a_release_that_is_not_known_is_reported(caplog):
    with caplog.at_level(logging.WARNING):
        check_version("4.4.0")
        check_version("4.4.0")
    (record,) = caplog.records
    assert "private parts of 4.4.0 may work in another way; install 4.3" in record.message
    assert list(missing_parts()) == ["a known release (4.3)"]


@pytest.mark.parametrize("version", [*KNOWN_VERSIONS, pyspark.__version__, "4.3.7", "4.3.0.dev1"])
def test_a_known_release_is_not_reported(version):
    check_version(version)
    assert missing_parts() == {}


def test_without_the_names_of_lambda_variables_a_transform_works_as_usual(monkeypatch, caplog):
    monkeypatch.setattr(patches, "LAMBDAS", PrivatePart("pyspark.sql.connect.expressions:Nothing.fresh_name", "slow"))
    with caplog.at_level(logging.WARNING), patches.stable_names():
        pass
    assert [record.message.endswith(": slow") for record in caplog.records] == [True]
