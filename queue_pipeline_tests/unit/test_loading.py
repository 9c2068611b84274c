"""Loading a project's modules without the garbage collector."""

import gc

import pytest

from queue_pipeline.loading import uncollected


@pytest.fixture(autouse=True)
def as_before():
    was_on = gc.isenabled()
    yield
    gc.unfreeze()
    (gc.enable if was_on else gc.disable)()


@pytest.mark.parametrize("is_on", [True, False])
def test_nothing_is_collected_while_loading_and_the_collector_is_as_it_was_after(is_on):
    (gc.enable if is_on else gc.disable)()
    with uncollected():
        assert not gc.isenabled()
    assert gc.isenabled() is is_on


def test_what_was_loaded_is_not_searched_again():
    loaded = []
    with uncollected():
        loaded.append([])
    assert all(each is not loaded for each in gc.get_objects())
    assert gc.get_freeze_count() > 0


def test_the_collector_is_back_after_a_module_that_cannot_be_loaded():
    gc.enable()
    with pytest.raises(ImportError), uncollected():
        raise ImportError
    assert gc.isenabled()
