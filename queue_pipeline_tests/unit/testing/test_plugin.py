"""pytest loads the plugin in every project where this package is installed: it must cost nothing there."""

import subprocess
import sys
import tomllib
from pathlib import Path

HEAVY = ("pyspark", "pyarrow", "pandas", "sqlalchemy", "dagster", "pydantic")


def test_loading_the_plugin_loads_no_heavy_library():
    program = f"import sys, queue_pipeline.testing.plugin; print([name for name in {HEAVY} if name in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=60)
    assert loaded.stdout.strip() == "[]"


def test_pytest_finds_the_plugin_by_the_name_of_its_module():
    """Under another name, `-p queue_pipeline.testing.plugin` would register it twice, which pytest refuses."""
    project = tomllib.loads((Path(__file__).parents[3] / "pyproject.toml").read_text())
    plugin = "queue_pipeline.testing.plugin"
    assert project["project"]["entry-points"]["pytest11"] == {plugin: plugin}
