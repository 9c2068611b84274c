"""A local Spark Connect server of a run's own: no other run uses it, and it ends with the process that started it."""

from __future__ import annotations

import importlib.util
import os
import signal
import socket
import subprocess
import tempfile
import time
import uuid
from collections.abc import Mapping
from pathlib import Path

from queue_pipeline.processing.errors import SparkUnavailableError
from queue_pipeline.processing.spark.folder import LOCAL, spark_folder, temporary_files_in
from queue_pipeline.transport.private_files import make_private_folder

CLASS = "org.apache.spark.sql.connect.service.SparkConnectServer"
TOKEN_VARIABLE = "SPARK_CONNECT_AUTHENTICATE_TOKEN"
START_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_KILLED_SECONDS = 10.0
_TAIL_BYTES = 200_000
# The server is killed and its files are removed when the pipe to this process closes, however the process ends. If the
# server ends first, its files stay: the log says why.
GUARD = """{
    folder=$1; shift
    "$@" 3<&- & server=$!
    { cat <&3; trap '' TERM; kill -9 $server; } & guard=$!
    wait $server; code=$?
    kill $guard; wait $guard && rm -rf "$folder"
    exit $code
} 3<&0"""
_NOT_FOR_A_SERVER = ("spark.remote", "spark.master", "spark.api.mode")
_OF_A_CLIENT = ("SPARK_REMOTE", "SPARK_LOCAL_REMOTE", "SPARK_CONNECT_MODE_ENABLED")
_OUT_OF_MEMORY = "java.lang.OutOfMemoryError"
_EXIT_OUT_OF_MEMORY = 52
_JUST_DIED_SECONDS = 2.0
"""How long after its last answer the end of a server may take to be seen."""


class OwnServer:
    """A server that runs from the start of this object until `end`."""

    def __init__(self, config: Mapping[str, str]) -> None:
        """`config` is that of a server which is kept warm: master and properties are the same."""
        self._folder = spark_folder(config) / f"own-{uuid.uuid4().hex[:12]}"
        make_private_folder(self._folder)
        self.log = self._folder / "server.log"
        """What it writes, until it is ended."""
        self._token, self._port = str(uuid.uuid4()), _free_port()
        self._process = self._start(config)
        self._wait_until_ready()

    @property
    def address(self) -> str:
        """Where a client finds it, with the token."""
        return f"sc://localhost:{self._port}/;token={self._token}"

    @property
    def pid(self) -> int:
        """The process that guards it, which leads their group."""
        return self._process.pid

    def what_ended_it(self) -> str:
        """Why it ended, in words, or that it runs and does not answer."""
        try:
            code = self._process.wait(_JUST_DIED_SECONDS)
        except subprocess.TimeoutExpired:
            return "its server still runs, but does not answer"
        return cause_of_exit(code, self._last_words())

    def end(self) -> None:
        """Kill it, and remove what it wrote."""
        if self._process.stdin is not None:
            self._process.stdin.close()
        self._process.wait(_KILLED_SECONDS)
        subprocess.run(["rm", "-rf", str(self._folder)], check=False)

    def _start(self, config: Mapping[str, str]) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if name not in _OF_A_CLIENT}
        environment |= {TOKEN_VARIABLE: self._token, **temporary_files_in(self._folder / LOCAL)}
        command = [
            f"{_spark_home()}/bin/spark-submit", "--class", CLASS, "--name", "queue_pipeline",
            "--master", config["spark.remote"],
            "--conf", "spark.connect.grpc.binding.address=127.0.0.1",
            "--conf", f"spark.connect.grpc.binding.port={self._port}",
            "--properties-file", str(self._properties(config)),
        ]  # fmt: skip
        with self.log.open("wb") as log:
            return subprocess.Popen(
                ["sh", "-c", GUARD, "sh", str(self._folder), *command],
                env=environment, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True,
            )  # fmt: skip

    def _properties(self, config: Mapping[str, str]) -> Path:
        """The file with the properties of the server: among the arguments every user would see them."""
        with tempfile.NamedTemporaryFile("w", dir=self._folder, suffix=".properties", delete=False) as file:
            for name, value in config.items():
                if name not in _NOT_FOR_A_SERVER and not name.startswith("spark.local.connect."):
                    escaped = value.replace("\\", "\\\\").replace("\n", "\\n")
                    file.write(f"{name}={escaped}\n")
        return Path(file.name)

    def _wait_until_ready(self) -> None:
        limit = time.monotonic() + START_SECONDS
        while not _listens(self._port):
            code = self._process.poll()
            if code is not None or time.monotonic() > limit:
                reason = "takes too long" if code is None else cause_of_exit(code, self._last_words())
                last = (self._last_words().strip().splitlines() or [""])[-1]
                self.end()
                raise SparkUnavailableError(f"a Spark server of this run's own does not start: {reason} ({last})")
            time.sleep(_LOOK_SECONDS)

    def _last_words(self) -> str:
        with self.log.open("rb") as log:
            log.seek(max(0, self.log.stat().st_size - _TAIL_BYTES))
            return log.read().decode(errors="replace")


def cause_of_exit(code: int, log: str = "") -> str:
    """What ended a process of Spark, by its exit code (as a shell or as Python reports it) and its log."""
    number = -code if code < 0 else code - 128
    if _OUT_OF_MEMORY in log or code == _EXIT_OUT_OF_MEMORY:
        return f"its memory ran out ({_OUT_OF_MEMORY}, exit code {code}); see spark.driver.memory"
    if number == signal.SIGKILL:
        return "it was killed (signal 9, SIGKILL), as the kernel does when the memory of the machine runs out"
    if code < 0 or 128 < code < 160:
        return f"it ended by signal {number} ({_signal_name(number)})"
    return f"it ended with exit code {code}"


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return "of another kind"


def _spark_home() -> str:
    found = importlib.util.find_spec("pyspark")
    folder = str(Path(found.origin).parent) if found is not None and found.origin else ""
    return os.environ.get("SPARK_HOME") or folder


def _free_port() -> int:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as any_port:
        any_port.bind(("127.0.0.1", 0))
        return int(any_port.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as client:
        client.settimeout(0.5)
        return client.connect_ex(("127.0.0.1", port)) == 0
