"""A liveness probe, as Docker and Kubernetes have it: `queue-pipeline health`, and a restart of what it names."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tools.chaos.dagster.background import Background
from tools.chaos.dagster.project import CODE_SERVER, DAEMON
from tools.chaos.dagster.services import Services

PERIOD_SECONDS = 15.0
FAILURES = 2
"""Probes in a row that have to fail."""
TICK_SECONDS = 35.0
"""How long ago the last tick may have ended: more than two ticks of the deployment."""
START_SECONDS = 60.0
"""After a restart nothing is probed for this long."""
_TIMEOUT_SECONDS = 30.0


class Liveness(Background):
    """Probes in a thread of its own."""

    def __init__(self, services: Services, environment: Mapping[str, str]) -> None:
        self._services = services
        self._environment = environment
        super().__init__("liveness")
        self.restarted: list[str] = []
        """Services that were restarted, in order."""

    def _run(self) -> None:
        failures, wait = 0, START_SECONDS
        while not self._is_closed.wait(wait):
            wait = PERIOD_SECONDS
            found = self._probe()
            failures = failures + 1 if found else 0
            if found and failures >= FAILURES:
                self._services.stop(found)
                self.restarted.append(found)
                failures, wait = 0, START_SECONDS

    def _probe(self) -> str | None:
        """The service that has to be restarted; None if there is none, or none that a restart would help."""
        program = str(Path(sys.executable).with_name("queue-pipeline"))
        checks = ("--check", "ticks", "--check", "daemon", "--tick-seconds", str(TICK_SECONDS))
        command = [program, "--json", "health", *checks]
        try:
            done = subprocess.run(
                command, env=dict(self._environment), capture_output=True, text=True, timeout=_TIMEOUT_SECONDS
            )
        except subprocess.TimeoutExpired:
            return None
        return silent_service(done.stdout)


def silent_service(output: str) -> str | None:
    """Which service `queue-pipeline health` says does not tick any more."""
    try:
        problems = json.loads(output)["problems"]
    except (ValueError, LookupError, TypeError):
        return None
    services = {"daemon": DAEMON, "ticks": CODE_SERVER}
    return next((services[one["check"]] for one in problems if one["check"] in services), None)
