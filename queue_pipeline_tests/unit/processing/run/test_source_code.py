"""Which files are the project's, and when their code counts as changed."""

import importlib
import os
import sys
import time

import pytest

from queue_pipeline.processing.run import source_code
from queue_pipeline.processing.run.source_code import SourceCode

LONG_AGO = 1_700_000_000


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A package `shop_of_tests` with two modules that are loaded, written long ago."""
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "shop_of_tests"
    package.mkdir()
    for name, text in (("__init__", ""), ("prices", "TAX = 20\n"), ("orders", "import shop_of_tests.prices\n")):
        write(package / f"{name}.py", text)
    importlib.import_module("shop_of_tests.orders")
    yield package
    for name in [name for name in sys.modules if name.partition(".")[0] == "shop_of_tests"]:
        del sys.modules[name]


def write(path, text, written=LONG_AGO):
    path.write_text(text)
    os.utime(path, (written, written))


def test_nothing_has_changed_at_first(project):
    code = SourceCode()
    assert code.change() is None
    assert code.uncertain is None


def test_the_changed_module_is_named(project):
    code = SourceCode()
    write(project / "prices.py", "TAX = 21\n", LONG_AGO + 1)
    assert code.change() == "shop_of_tests.prices"


def test_a_change_that_is_undone_does_not_count(project):
    code = SourceCode()
    write(project / "prices.py", "TAX = 21\n", LONG_AGO + 1)
    assert code.change() is not None
    write(project / "prices.py", "TAX = 20\n", LONG_AGO + 2)
    assert code.change() is None


def test_a_file_that_is_only_touched_has_not_changed(project):
    code = SourceCode()
    os.utime(project / "prices.py")
    assert code.change() is None


def test_a_file_that_is_gone_has_changed(project):
    code = SourceCode()
    (project / "prices.py").unlink()
    assert code.change() == "shop_of_tests.prices"


def test_a_module_that_is_loaded_later_is_watched_from_then_on(project):
    write(project / "late.py", "")
    code = SourceCode()
    write(project / "late.py", "A = 1\n", LONG_AGO + 1)
    assert code.change() is None
    importlib.import_module("shop_of_tests.late")
    assert code.change() is None
    write(project / "late.py", "A = 22\n", LONG_AGO + 2)
    assert code.change() == "shop_of_tests.late"


def test_a_new_release_behind_a_link_is_a_change(tmp_path, monkeypatch):
    for release, tax in (("1", 20), ("2", 21)):
        (tmp_path / release).mkdir()
        write(tmp_path / release / "linked_shop_of_tests.py", f"TAX = {tax}\n")
    current = tmp_path / "current"
    current.symlink_to(tmp_path / "1")
    monkeypatch.syspath_prepend(str(current))
    importlib.import_module("linked_shop_of_tests")
    code = SourceCode()
    (tmp_path / "next").symlink_to(tmp_path / "2")
    (tmp_path / "next").rename(current)
    assert code.change() == "linked_shop_of_tests"
    del sys.modules["linked_shop_of_tests"]


def test_installed_packages_are_not_the_project_unless_a_pipeline_is_in_one(project, monkeypatch):
    monkeypatch.setattr(source_code, "_installed_folders", lambda: (f"{project.parent}{os.sep}",))
    other, own = SourceCode(), SourceCode({"shop_of_tests"})
    write(project / "prices.py", "TAX = 21\n", LONG_AGO + 1)
    assert other.change() is None
    assert own.change() == "shop_of_tests.prices"


def test_the_standard_library_and_what_is_installed_are_left_out():
    watched = {known.path for known in SourceCode()._files.values()}
    assert source_code.__file__ in watched
    assert not {module.__file__ for module in (os, importlib, pytest)} & watched


def test_code_that_was_written_while_it_was_loaded_is_uncertain(project):
    write(project / "prices.py", "TAX = 21\n", time.time())
    assert SourceCode().uncertain == "shop_of_tests.prices"


def test_code_that_was_written_before_the_process_began_is_certain(project):
    write(project / "prices.py", "TAX = 21\n", source_code._started() - 1)
    assert SourceCode().uncertain is None


def test_a_file_with_a_time_in_the_future_is_certain(project):
    write(project / "prices.py", "TAX = 21\n", time.time() + 3600)
    assert SourceCode().uncertain is None


def test_the_same_code_has_the_same_fingerprint_wherever_it_is(project, tmp_path, monkeypatch):
    monkeypatch.setattr(source_code, "_installed_folders", lambda: (os.sep,))
    first = SourceCode({"shop_of_tests"}).fingerprint
    moved = tmp_path / "elsewhere"
    project.rename(moved)
    for name in ("", ".prices", ".orders"):
        file = moved / f"{name.removeprefix('.') or '__init__'}.py"
        monkeypatch.setattr(sys.modules[f"shop_of_tests{name}"], "__file__", str(file))
    assert SourceCode({"shop_of_tests"}).fingerprint == first
    write(moved / "prices.py", "TAX = 21\n")
    assert SourceCode({"shop_of_tests"}).fingerprint != first


def test_the_newest_file_or_the_load_gives_the_time_of_the_last_code_change(project):
    code = SourceCode()
    assert code.changed_at() >= code.loaded_at
    later = time.time() + 100
    os.utime(project / "prices.py", (later, later))
    assert code.changed_at() == pytest.approx(later)


def test_a_module_that_is_loaded_late_is_uncertain_if_it_was_written_since_the_last_look(project):
    code = SourceCode()
    write(project / "late.py", "", time.time())
    write(project / "older.py", "", code.loaded_at - 1)
    importlib.import_module("shop_of_tests.older")
    code.look()
    assert code.uncertain is None
    write(project / "late.py", "", time.time())
    importlib.import_module("shop_of_tests.late")
    code.look()
    assert code.uncertain == "shop_of_tests.late"


def test_forgotten_code_is_loaded_again(project):
    code = SourceCode()
    main, prices = sys.modules["__main__"], sys.modules["shop_of_tests.prices"]
    write(project / "prices.py", "TAX = 100\n", LONG_AGO + 1)
    kept = {name: module for name, module in sys.modules.items() if name.partition(".")[0] != "shop_of_tests"}
    try:
        code.forget()
        assert importlib.import_module("shop_of_tests.prices").TAX == 100
        assert prices.TAX == 20 and sys.modules["__main__"] is main
        assert code.change() is None and code.uncertain is None
    finally:
        sys.modules.update(kept)
