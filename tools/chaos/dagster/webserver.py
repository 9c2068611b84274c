"""What a person does in Dagster's UI, and what they see there, through GraphQL."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from queue_pipeline.orchestration.names import PIPELINE_TAG
from tools.chaos.dagster.project import LOCATION
from tools.graphql import ask

_RELOAD_SECONDS = 60.0
_RUNS = """query ($filter: RunsFilter!) { runsOrError(filter: $filter, limit: 2000) {
  ... on Runs { results { runId status tags { key value } } } ... on Error { message } } }"""
_EVENTS = """query ($id: ID!) { runOrError(runId: $id) { ... on Run { eventConnection { events {
  ... on EngineEvent { metadataEntries { label
    ... on TextMetadataEntry { text } ... on IntMetadataEntry { intValue } } }
} } } } }"""
_TERMINATE = """mutation ($id: String!) { terminateRun(runId: $id) { __typename
  ... on TerminateRunFailure { message } ... on PythonError { message } } }"""
_RELOAD = """mutation ($name: String!) { reloadRepositoryLocation(repositoryLocationName: $name) { __typename
  ... on PythonError { message } ... on WorkspaceLocationEntry { locationOrLoadError { __typename } } } }"""
_READY = """{ workspaceOrError { ... on Workspace { locationEntries { locationOrLoadError {
  __typename ... on PythonError { message } } } } }
  instance { daemonHealth { daemonStatus(daemonType: "SENSOR") { healthy } } } }"""


@dataclass(frozen=True)
class Run:
    """A run, as Dagster knows it."""

    id: str
    status: str
    pipeline: str | None


@dataclass(frozen=True)
class Webserver:
    """The webserver at an address. Every question raises OSError when it does not answer."""

    address: str

    def is_ready(self) -> bool:
        """Whether the code is loaded and the daemon ticks sensors."""
        answer = self._ask(_READY)
        loaded = [entry["locationOrLoadError"] for entry in answer["workspaceOrError"]["locationEntries"]]
        if any(one is not None and one["__typename"] == "PythonError" for one in loaded):
            raise OSError(f"the code location does not load: {loaded}")
        status = answer["instance"]["daemonHealth"]["daemonStatus"]
        return bool(loaded) and all(loaded) and bool(status["healthy"])

    def runs(self, *statuses: str) -> list[Run]:
        """Runs of pipelines with one of these statuses, the newest first."""
        answer = self._ask(_RUNS, filter={"statuses": list(statuses)} if statuses else {})["runsOrError"]
        found = []
        for one in answer.get("results", ()):
            tags = {tag["key"]: tag["value"] for tag in one["tags"]}
            found.append(Run(one["runId"], one["status"], tags.get(PIPELINE_TAG)))
        return found

    def worker_pid(self, run: Run) -> int | None:
        """The process that works on a run, once its events say so."""
        answer = self._ask(_EVENTS, id=run.id)["runOrError"]
        for event in answer.get("eventConnection", {}).get("events", ()):
            for entry in event.get("metadataEntries", ()):
                if entry["label"] == "pid":
                    return int(entry.get("text") or entry["intValue"])
        return None

    def terminate(self, run: Run) -> str:
        """What the button of a run does; returns what Dagster answers."""
        return str(self._ask(_TERMINATE, id=run.id)["terminateRun"]["__typename"])

    def reload(self) -> str:
        """Load the code location anew; returns what Dagster answers."""
        answer = self._ask(_RELOAD, _RELOAD_SECONDS, name=LOCATION)["reloadRepositoryLocation"]
        return str(answer["__typename"])

    def _ask(self, query: str, timeout: float = 20.0, **variables: Any) -> dict[str, Any]:
        try:
            return ask(self.address, query, variables, timeout)
        except (ValueError, LookupError, TypeError) as error:
            raise OSError(f"no answer from Dagster: {error}") from None
