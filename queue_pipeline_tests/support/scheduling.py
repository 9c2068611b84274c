"""Which tests run in the same process when the suite runs in several.

A scheduler of our own: pytest-xdist 3.8 writes the mark of a group into the ids of tests, and pytest 9.2 ignores that.
"""

from __future__ import annotations

from xdist.scheduler import LoadScopeScheduling

SERVICES = ("acceptance", "cluster")
"""Folders whose tests share a deployment: services of Dagster, a cluster of Spark."""


def group_of(nodeid: str) -> str:
    """The folder of tests that share a deployment, else the module.

    Every process has a Spark server of its own: if all tests of Spark ran in one, the other would be without work.
    """
    module = nodeid.partition("::")[0]
    folder = module.split("/")[1]
    return folder if folder in SERVICES else module


class GroupScheduling(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """Hands out whole groups, in the order of the tests: what takes longest comes first."""

    def _split_scope(self, nodeid: str) -> str:
        return group_of(nodeid)
