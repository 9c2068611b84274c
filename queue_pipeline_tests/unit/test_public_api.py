"""The names at the root of the package: what a program may import, and what that costs it."""

import enum
import inspect
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

import queue_pipeline

ROOT = Path(__file__).resolve().parents[2]
HEAVY = ("pyspark", "dagster", "sqlalchemy", "pandas", "pyarrow")


def program(text):
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


def signature(value):
    """How something is called: of a model its fields, of an enumeration its members."""
    if issubclass(type(value), enum.EnumType):
        return [member.value for member in value]
    if hasattr(value, "model_fields"):
        return sorted(value.model_fields)
    return None if issubclass(type(value), type) and issubclass(value, Exception) else str(inspect.signature(value))


def test_importing_the_package_loads_nothing_heavy():
    heavy = json.loads(
        program(f"import queue_pipeline, sys, json; print(json.dumps([n for n in {HEAVY} if n in sys.modules]))")
    )
    assert heavy == []


@pytest.mark.parametrize("name", ["QueueTransport", "QueueClient", "OutgoingMessage", "QueuePipelineError"])
def test_what_other_programs_need_loads_neither_spark_nor_dagster(name):
    unwanted = ("pyspark", "dagster", "pandas")
    text = f"from queue_pipeline import {name}; import sys; print([n for n in {unwanted} if n in sys.modules])"
    assert program(text).strip() == "[]"


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="has no attribute 'Queue'"):
        queue_pipeline.Queue  # noqa: B018 - the access is what is tested


def test_every_public_name_is_there_and_listed():
    assert len(queue_pipeline.__all__) == len(set(queue_pipeline.__all__))
    assert set(queue_pipeline.__all__) <= set(dir(queue_pipeline))
    for name in queue_pipeline.__all__:
        assert getattr(queue_pipeline, name).__name__ == name


@pytest.mark.parametrize("name", queue_pipeline.__all__)
def test_a_public_name_is_called_as_the_last_release_was(name):
    """Change the pinned text only together with the CHANGELOG: it is what programs of others call."""
    pinned = json.loads((Path(__file__).parent / "public_api.json").read_text())
    assert sorted(pinned) == sorted(queue_pipeline.__all__)
    assert signature(getattr(queue_pipeline, name)) == pinned[name]


IMPORT = re.compile(r"^\s*(?:from|import) (queue_pipeline(?:\.\w+)*)", re.MULTILINE)


def written_for_users():
    files = [*(ROOT / "queue_pipeline" / "defs").glob("*.py"), ROOT / "queue_pipeline" / "definitions.py"]
    examples = [path for path in (ROOT / "examples").rglob("*") if path.suffix in (".py", ".md")]
    return [*files, ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *examples]


@pytest.mark.parametrize("path", written_for_users(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_what_users_read_imports_nothing_deeper_than_the_root(path):
    allowed = {"queue_pipeline", "queue_pipeline.errors", "queue_pipeline.testing", "queue_pipeline.defs"}
    assert set(IMPORT.findall(path.read_text())) <= allowed


BLOCK = """
import sys
from importlib.abc import MetaPathFinder

class Blocked(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {blocked}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Blocked())
"""


@pytest.mark.parametrize(
    ("blocked", "name", "extra"),
    [
        ({"pyspark"}, "QueuePipeline", "spark"),
        ({"dagster"}, "queue_definitions", "dagster"),
    ],
)
def test_a_missing_package_is_an_error_that_names_its_extra(blocked, name, extra):
    text = f"""{BLOCK.format(blocked=blocked)}
import queue_pipeline
try:
    queue_pipeline.{name}
except queue_pipeline.QueuePipelineError as error:
    print(isinstance(error, ImportError), error)
"""
    found = program(text)
    assert found.startswith(f"True queue_pipeline.{name} needs")
    assert f"pip install 'queue_pipeline[{extra}]'" in found


@pytest.mark.parametrize("what", ["from queue_pipeline.testing import run_transform", "spark()"])
def test_tests_of_transforms_name_the_extra_that_they_need(what):
    text = f"""{BLOCK.format(blocked={"pyspark", "pandas", "pyarrow"})}
from queue_pipeline import QueuePipelineError
from queue_pipeline.testing import plugin
spark = plugin.queue_spark.__wrapped__
try:
    {what}
except QueuePipelineError as error:
    print(error)
"""
    assert "pip install 'queue_pipeline[spark]'" in program(text)


OF_EXTRAS = {"pyspark", "dagster", "dagster_pyspark", "pandas", "pyarrow", "psycopg", "pyodbc"}


def test_without_extras_queues_in_sqlite_work(tmp_path):
    database = f"sqlite:///{tmp_path}/queues.db"
    text = f"""{BLOCK.format(blocked=OF_EXTRAS)}
from queue_pipeline import QueueClient, QueueTransport, new_message
from queue_pipeline.cli import main
def run(*words):
    assert main(["--database", {database!r}, *words]) == 0, words
run("install", "orders")
run("send", "orders", "--body", "sent")
with QueueTransport({database!r}) as transport:
    transport.send("orders", new_message("by Python"))
    print([one.body for one in transport.browse("orders")])
for command in ("peek orders", "show orders", "status", "claims list", "errors list", "health", "audit-indexes"):
    run(*command.split())
run("show", "orders", "--csv", "--headers")
run("receive", "orders", "--max", "2")
run("purge", "orders")
run("spark", "status")
with QueueClient({database!r}, create=True) as client:
    client.send("orders", "asked")
run("receive", "orders")
"""
    assert "[b'sent', b'by Python']" in program(text)


def test_tables_of_messages_name_the_extra_that_brings_arrow(tmp_path):
    text = f"""{BLOCK.format(blocked=OF_EXTRAS)}
import sys
from queue_pipeline import QueuePipelineError, QueueTransport
from queue_pipeline.cli import main
with QueueTransport("sqlite:///{tmp_path}/queues.db") as transport:
    transport.install("orders")
    try:
        transport.browse("orders").to_pandas()
    except QueuePipelineError as error:
        print(error)
sys.stderr = sys.stdout
print(main(["--database", "sqlite:///{tmp_path}/queues.db", "show", "orders", "--parquet", "{tmp_path}/x.parquet"]))
"""
    found = program(text)
    assert found.count("pip install 'queue_pipeline[arrow]'") == 2
    assert found.endswith("\n2\n")
