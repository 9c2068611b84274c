"""The running UI as the demo sees it: its addresses, and its runs through GraphQL."""

from __future__ import annotations

import socket
import urllib.error
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools.demo.workplace import DemoError
from tools.graphql import IN_FLIGHT, ask

HOST = "127.0.0.1"
USUAL_PORT = 3000
JOB = "orders_pipeline"

_RUNS = """query($filter: RunsFilter!) {
  runsOrError(filter: $filter, limit: 50) { ... on Runs { results { runId status } } }
}"""
_TERMINATE = """mutation($runs: [String!]!, $policy: TerminateRunPolicy) {
  terminateRuns(runIds: $runs, terminatePolicy: $policy) { __typename }
}"""


@dataclass(frozen=True, slots=True)
class Run:
    """A run of the pipeline."""

    run_id: str
    status: str

    @property
    def is_over(self) -> bool:
        """Whether nothing more will come of it."""
        return self.status in ("SUCCESS", "FAILURE", "CANCELED")


@dataclass(frozen=True, slots=True)
class DagsterUi:
    """Dagster's webserver at a port of this machine, for the instance whose files are in `home`."""

    port: int
    home: Path

    @property
    def address(self) -> str:
        """Where a browser finds it."""
        return f"http://{HOST}:{self.port}"

    def pages(self, run: Run | None) -> list[tuple[str, str]]:
        """Where to look, and at what."""
        pages = [
            (
                f"{self.address}/asset-groups",
                "lineage: orders_queue → orders → billing_queue, shipping_queue, error_queue; click a node",
            ),
            (
                f"{self.address}/assets/orders",
                "the pipeline; click Plots: throughput, latency, in, out, failed, every minute of a run",
            ),
            (
                f"{self.address}/assets/orders?view=checks&checkDetail=error_queue_empty",
                "which orders failed, why, and the command that sends them back; click Execute to check again",
            ),
            (
                f"{self.address}/locations/queue_pipeline/jobs/retry_errors/playground",
                "sends failed orders back: click on a field to read what it is for; an empty choice is refused",
            ),
            (
                f"{self.address}/locations/queue_pipeline/sensors/peek_queues",
                "the peek loop; click on the result of a tick: the run that it started, or why it started none",
            ),
        ]
        if run is not None:
            figures = "the first run: its two steps, its log, and its figures at the materialization"
            pages.append((f"{self.address}/runs/{run.run_id}", figures))
        return pages

    def answers(self) -> bool:
        """Whether it is up. Raises if another program took the port meanwhile.

        Without this look the demo would end the runs of another Dagster.
        """
        try:
            information = str(ask(self.address, "{ instance { info } }", {})["instance"]["info"])
        except urllib.error.HTTPError:
            information = ""
        except OSError:
            return False
        except (ValueError, LookupError, TypeError):
            information = ""
        if str(self.home) not in information:
            raise DemoError(f"port {self.port} was taken by another program meanwhile; start the demo again")
        return True

    def runs(self, *, since: float | None = None, before: float | None = None, in_flight: bool = False) -> list[Run]:
        """Runs of the pipeline, the newest first."""
        chosen: dict[str, Any] = {"pipelineName": JOB}
        if since is not None:
            chosen["createdAfter"] = since
        if before is not None:
            chosen["createdBefore"] = before
        if in_flight:
            chosen["statuses"] = list(IN_FLIGHT)
        found = ask(self.address, _RUNS, {"filter": chosen})
        return [Run(one["runId"], one["status"]) for one in found["runsOrError"].get("results", [])]

    def terminate(self, runs: list[Run], *, dead: bool = False) -> None:
        """Let runs end and release what they hold; of the dead only the record is corrected."""
        if runs:
            policy = "MARK_AS_CANCELED_IMMEDIATELY" if dead else "SAFE_TERMINATE"
            ask(self.address, _TERMINATE, {"runs": [run.run_id for run in runs], "policy": policy})


def free_port(usual: int = USUAL_PORT) -> int:
    """The usual port, or another one if it is taken."""
    for port in (usual, 0):
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((HOST, port))
            except OSError:
                continue
            return int(trial.getsockname()[1])
    raise OSError(f"no port of {HOST} is free")
