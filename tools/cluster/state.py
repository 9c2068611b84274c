"""What is written down about a cluster, so that another process can check and end it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from queue_pipeline.errors import QueuePipelineError

HOST = "127.0.0.1"
STATE = "cluster.json"
"""The file of a cluster in its folder that says what runs."""
Port = Field(ge=1, le=65_535)


class ClusterError(QueuePipelineError):
    """The cluster cannot be started, found or ended."""


class Member(BaseModel):
    """One program of the cluster."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    pid: int = Field(ge=1)
    port: int = Port
    ui_port: int | None = Field(default=None, ge=1, le=65_535)


class ClusterState(BaseModel):
    """A cluster: the mark that all its processes carry, and its programs as far as they are started."""

    model_config = ConfigDict(extra="forbid")

    mark: str = Field(min_length=1)
    size: int = Field(ge=1)
    with_connect: bool
    master: Member | None = None
    workers: list[Member] = []
    connect: Member | None = None

    def emptied(self) -> ClusterState:
        """The same cluster before anything of it was started."""
        return ClusterState(mark=self.mark, size=self.size, with_connect=self.with_connect)

    @property
    def master_url(self) -> str | None:
        """The setting for drivers of one's own."""
        return None if self.master is None else f"spark://{HOST}:{self.master.port}"

    @property
    def remote_url(self) -> str | None:
        """The setting for Spark Connect. Its client sends a token without TLS to this name only."""
        return None if self.connect is None else f"sc://localhost:{self.connect.port}"

    @property
    def ui(self) -> str | None:
        """The master's page."""
        return None if self.master is None else f"http://{HOST}:{self.master.ui_port}"
