"""Where a DataFrame function was called, told as Spark's own client tells it."""

import importlib.util
import sys
from types import ModuleType

import pyspark.errors.utils
import pytest

from queue_pipeline.processing.call_sites import tell_call_sites_quickly


@pytest.fixture
def client(monkeypatch):
    """The client's module as it comes, in the place of the one that the suite has changed already."""
    spec = importlib.util.spec_from_file_location("pyspark.errors.utils", pyspark.errors.utils.__file__)
    fresh = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "pyspark.errors.utils", fresh)
    spec.loader.exec_module(fresh)
    return fresh


def test_the_call_site_is_the_one_that_the_client_tells(client):
    told = [client._capture_call_site(depth) for depth in (0, 1, 3)]
    original = client._capture_call_site
    tell_call_sites_quickly()
    assert client._capture_call_site is not original
    again = [client._capture_call_site(depth) for depth in (0, 1, 3)]
    assert [text.replace(told[1], again[1]) for text in told] == again
    file, _, line = again[1].rpartition(":")
    assert (file, line.isdigit()) == (__file__, True)


def test_it_is_replaced_once(client):
    tell_call_sites_quickly()
    replaced = client._capture_call_site
    tell_call_sites_quickly()
    assert client._capture_call_site is replaced


def test_in_a_notebook_the_client_is_left_alone(client, monkeypatch):
    """It names the cell there."""
    notebook = ModuleType("IPython")
    notebook.__spec__ = importlib.util.spec_from_loader("IPython", None)
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    original = client._capture_call_site
    tell_call_sites_quickly()
    assert client._capture_call_site is original


def test_a_client_without_such_a_function_is_left_alone(client):
    del client._capture_call_site
    tell_call_sites_quickly()
    assert not hasattr(client, "_capture_call_site")
