"""The suite in several processes: tests that share what takes long to start run in one of them."""

import subprocess
import sys
from collections import defaultdict

import pytest

from queue_pipeline_tests.support.scheduling import group_of


def test_tests_of_one_deployment_are_a_group_and_else_those_of_a_module():
    one, other = "queue_pipeline_tests/acceptance/test_a.py::test_a[x::y]", "queue_pipeline_tests/acceptance/test_b.py"
    assert group_of(one) == group_of(other) == "acceptance"
    assert group_of("queue_pipeline_tests/unit/a/test_a.py::test_a") == "queue_pipeline_tests/unit/a/test_a.py"


@pytest.mark.slow
def test_each_module_runs_in_one_of_two_processes():
    modules = [
        f"queue_pipeline_tests/unit/transport/messages/test_{name}.py" for name in ("event", "messages", "headers")
    ]
    options = ["-v", "-p", "no:cacheprovider", "-n", "2", "--dist", "loadscope", "--no-loadscope-reorder"]
    ran = subprocess.run([sys.executable, "-m", "pytest", *options, *modules], capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout
    workers = defaultdict(set)
    for line in ran.stdout.splitlines():
        if " PASSED " in line:
            workers[line.partition(" PASSED ")[2].partition("::")[0]].add(line[:5])
    assert {module: len(found) for module, found in workers.items()} == dict.fromkeys(modules, 1)
    assert len(set.union(*workers.values())) == 2
