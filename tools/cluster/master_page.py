"""What the master tells about its cluster, as JSON at its page."""

from __future__ import annotations

import json
import urllib.request
from typing import Any

from tools.cluster.ports import HOST
from tools.cluster.state import Member

_TIMEOUT_SECONDS = 5.0


def registered_workers(master: Member) -> set[int] | None:
    """The ports of the workers that the master counts as alive; None while nobody or somebody else answers."""
    try:
        # Whatever proxy the environment names, it is not the way to this machine.
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://{HOST}:{master.ui_port}/json/", timeout=_TIMEOUT_SECONDS) as answer:
            told: dict[str, Any] = json.load(answer)
        if told["status"] != "ALIVE" or told["url"] != f"spark://{HOST}:{master.port}":
            return None
        return {int(worker["port"]) for worker in told["workers"] if worker["state"] == "ALIVE"}
    except (OSError, ValueError, LookupError, TypeError):
        return None
