"""Where a cluster keeps everything: one folder, and one cluster in it at a time."""

from __future__ import annotations

import secrets
import shutil
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from queue_pipeline.transport.private_files import PRIVATE_FOLDER, write_private_file
from tools.cluster.state import STATE, ClusterError, ClusterState
from tools.processes import Processes, occupied


@dataclass(frozen=True, slots=True)
class ClusterFolder:
    """The folder of a cluster, and what is written down there about it."""

    path: Path

    def log(self, name: str) -> Path:
        """What a program of the cluster says."""
        return self.path / "logs" / f"{name}.log"

    def work(self, name: str) -> Path:
        """What the executors of a worker write, their output included."""
        return self.path / "work" / name

    @property
    def conf(self) -> Path:
        """The folder with the file of defaults that every program of the cluster reads, and every driver must."""
        return self.path / "conf"

    @property
    def token(self) -> Path:
        """The file with the token of the Connect server."""
        return self.conf / "connect-token"

    def prepare(self, token: str) -> None:
        """Throw away what an earlier cluster left, and nothing that is not its own; write down new secrets."""
        names = ("conf", "local", "logs", "warehouse", "work")
        for name in names:
            shutil.rmtree(self.path / name, ignore_errors=True)
        for name in names:
            (self.path / name).mkdir(mode=PRIVATE_FOLDER)
        properties = {
            "spark.authenticate": "true",
            "spark.authenticate.secret": secrets.token_hex(32),
            # The pages have no login: they must not end what others run.
            "spark.ui.killEnabled": "false",
        }
        lines = [f"{name} {value}\n" for name, value in properties.items()]
        write_private_file(self.conf / "spark-defaults.conf", "".join(lines))
        write_private_file(self.token, token)

    def occupied(self) -> AbstractContextManager[None]:
        """Keep others out while the cluster is started or stopped."""
        return occupied(self.path, ClusterError(f"the cluster in {self.path} is being started or stopped right now"))

    def read(self) -> ClusterState | None:
        """The cluster that is written down, whether or not anything of it still runs."""
        path = self.path / STATE
        try:
            return ClusterState.model_validate_json(path.read_bytes())
        except FileNotFoundError:
            return None
        except (OSError, ValidationError) as error:
            # Without the mark its processes cannot be recognised, so the file stays.
            raise ClusterError(f"{path} cannot be read: {error}; remove it if no cluster runs there") from None

    def write(self, state: ClusterState) -> None:
        """Write it down, whole or not at all."""
        write_private_file(self.path / STATE, state.model_dump_json(indent=2) + "\n")

    def alive(self) -> list[int]:
        """What runs of the cluster that is written down."""
        state = self.read()
        return [] if state is None else Processes(self.path, {}, state.mark).alive()

    def end(self, processes: Processes) -> None:
        """End all that carries the mark of a cluster, and forget about it."""
        if left := processes.end():
            raise ClusterError(f"these processes do not end: {', '.join(map(str, left))}; end them with: kill -9")
        state = self.read()
        if state is not None and state.mark == processes.mark:
            shutil.rmtree(self.path / "local", ignore_errors=True)
            (self.path / STATE).unlink()
