"""Questions to a Dagster webserver through GraphQL."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

IN_FLIGHT = ("QUEUED", "NOT_STARTED", "STARTING", "STARTED", "CANCELING")
"""What Dagster calls runs that have not ended."""
_TIMEOUT_SECONDS = 10.0
# Nothing between this machine and itself.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def ask(address: str, query: str, variables: dict[str, Any], timeout: float = _TIMEOUT_SECONDS) -> dict[str, Any]:
    """The data of an answer; raises OSError when there is none, ValueError when it is no answer to GraphQL."""
    body = json.dumps({"query": query, "variables": variables}).encode()
    request = urllib.request.Request(f"{address}/graphql", body, {"Content-Type": "application/json"}, method="POST")
    with _OPENER.open(request, timeout=timeout) as response:
        answer = json.load(response)
    if not isinstance(answer, dict):
        raise ValueError(f"no answer to a GraphQL query: {answer!r}")
    if answer.get("errors"):
        raise OSError(f"Dagster answers: {answer['errors'][0]['message']}")
    data: dict[str, Any] = answer["data"]
    return data
