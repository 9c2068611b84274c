"""A private PostgreSQL cluster for tests, benchmarks and tools, gone when the process that started it is gone."""

from __future__ import annotations

import os
import pwd
import secrets
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self
from urllib.parse import quote

from queue_pipeline.errors import QueuePipelineError

SUPERUSER = "queue_pipeline"
_INSTALLED = Path("/usr/lib/postgresql")
_START_TIMEOUT = 60.0
_STOP_TIMEOUT = 60.0

StopMode = Literal["fast", "immediate"]
_STOP_SIGNALS = {"fast": signal.SIGINT, "immediate": signal.SIGQUIT}


class PostgresClusterError(QueuePipelineError):
    """The cluster could not be created, started or asked."""


def find_binaries(installed: Path = _INSTALLED) -> Path:
    """Find the programs of the newest PostgreSQL server that Debian's packages installed."""
    candidates = [path.parent for path in installed.glob("*/bin/postgres") if path.parts[-3].isdigit()]
    if not candidates:
        raise PostgresClusterError(f"no PostgreSQL server under {installed}; run scripts/bootstrap to install it")
    return max(candidates, key=lambda path: int(path.parts[-2]))


class PostgresCluster:
    """A PostgreSQL server in a temporary directory, on a free port of the loopback interface.

    The server refuses to run as root, so under root it runs as Debian's user `postgres`. The kernel stops it
    when the *thread* that called `start` ends: start it from one that lives as long as the cluster is used.
    `fsync=False` is for tests: a crash of the server loses nothing, only a crash of the machine does. `driver` is the
    one that its URLs name: psycopg or pyodbc.
    """

    def __init__(
        self, *, fsync: bool = False, settings: Mapping[str, str] | None = None, driver: str = "psycopg"
    ) -> None:
        self.password = secrets.token_urlsafe(18)
        self.driver = driver
        self.port = 0
        self._binaries = find_binaries()
        self._user = _server_user()
        self._settings = {"max_connections": "100", "fsync": "on" if fsync else "off", **(settings or {})}
        self._environment = {k: v for k, v in os.environ.items() if not k.startswith("PG")} | {"LC_ALL": "C"}
        self._process: subprocess.Popen[bytes] | None = None
        self._temporary = tempfile.TemporaryDirectory(prefix="queue_pipeline-pg-", ignore_cleanup_errors=True)
        self.directory = Path(self._temporary.name)
        if self._user is not None:
            os.chown(self.directory, self._user.pw_uid, self._user.pw_gid)
        self._data = self.directory / "data"
        self._log = self.directory / "server.log"

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def pid(self) -> int:
        """The process id of the server."""
        if self._process is None:
            raise PostgresClusterError("the cluster is not running")
        return self._process.pid

    def is_running(self) -> bool:
        """Whether the server process is alive."""
        return self._process is not None and self._process.poll() is None

    def start(self) -> None:
        """Start the server and wait until it takes connections; the port stays the same across restarts."""
        if self.is_running():
            return
        if not self._data.exists():
            self._initialise()
        if self.port:
            self._launch(self.port)
            return
        for _ in range(5):
            port = free_port()
            try:
                self._launch(port)
            except PostgresClusterError:
                # Another process may have taken the port in between; any other failure is final.
                if "Address already in use" not in self._log.read_text(errors="replace"):
                    raise
            else:
                self.port = port
                return
        raise PostgresClusterError(f"no free port for PostgreSQL after 5 attempts:\n{self._log_tail()}")

    def stop(self, mode: StopMode = "fast") -> None:
        """Stop the server: `fast` shuts down cleanly, `immediate` crashes it and the next start recovers."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.send_signal(_STOP_SIGNALS[mode])
        try:
            process.wait(_STOP_TIMEOUT)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def restart(self, mode: StopMode = "immediate") -> None:
        """Stop and start again on the same port; the default is a crash."""
        self.stop(mode)
        self.start()

    def close(self) -> None:
        """Stop the server and remove its directory."""
        self.stop("immediate")
        self._temporary.cleanup()

    def url(
        self,
        database: str = "postgres",
        user: str = SUPERUSER,
        password: str | None = None,
        *,
        driver: str | None = None,
    ) -> str:
        """Give the URL of a database, for the superuser unless another role is named."""
        secret = self.password if password is None else password
        credentials = f"{quote(user, safe='')}:{quote(secret, safe='')}"
        scheme = "postgresql+pyodbc" if (driver or self.driver) == "pyodbc" else "postgresql"
        return f"{scheme}://{credentials}@127.0.0.1:{self.port}/{quote(database, safe='')}"

    def run_sql(self, sql: str, database: str = "postgres") -> str:
        """Run SQL as the superuser through psql; the answer is its rows, columns separated by `|`."""
        address = ["-h", "127.0.0.1", "-p", str(self.port), "-U", SUPERUSER, "-d", database]
        return self._run(["psql", "-XqAt", "-v", "ON_ERROR_STOP=1", *address, "-f", "-"], stdin=sql)

    def create_database(self, name: str) -> None:
        """Create an empty database."""
        quoted = name.replace('"', '""')
        self.run_sql(f'CREATE DATABASE "{quoted}"')

    def _initialise(self) -> None:
        password_file = self.directory / "password"
        password_file.touch(mode=0o600)
        password_file.write_text(self.password)
        if self._user is not None:
            os.chown(password_file, self._user.pw_uid, self._user.pw_gid)
        options = ["-U", SUPERUSER, f"--pwfile={password_file}", "-A", "scram-sha-256", "-E", "UTF8"]
        self._run(["initdb", "-D", str(self._data), *options, "--locale=C.UTF-8", "--no-sync"], as_server=True)
        password_file.unlink()

    def _launch(self, port: int) -> None:
        settings = [f"--{name}={value}" for name, value in self._settings.items()]
        # setpriv replaces itself by the server, which so is our child and is stopped when we end, however that is.
        command = ["setpriv", "--pdeathsig", "QUIT", "--", str(self._binaries / "postgres"), "-D", str(self._data)]
        command += ["-p", str(port), "-k", str(self.directory), "-c", "listen_addresses=127.0.0.1", *settings]
        with self._log.open("wb") as log:
            # A session of its own keeps a Ctrl-C on the tests from stopping the server under their clean-up.
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment,
                cwd=self.directory,
                start_new_session=True,
                **self._credentials(),
            )
        deadline = time.monotonic() + _START_TIMEOUT
        while not self._is_ready():
            if not self.is_running() or time.monotonic() > deadline:
                self.stop("immediate")
                raise PostgresClusterError(f"PostgreSQL did not start:\n{self._log_tail()}")
            time.sleep(0.02)

    def _is_ready(self) -> bool:
        try:
            lines = (self._data / "postmaster.pid").read_text().split("\n")
        except FileNotFoundError:
            return False
        # A file of a killed predecessor names another process; the eighth line is the server's own state.
        return len(lines) > 7 and lines[0] == str(self.pid) and lines[7].strip() == "ready"

    def _run(self, command: list[str], *, stdin: str = "", as_server: bool = False) -> str:
        program, *arguments = command
        done = subprocess.run(
            [str(self._binaries / program), *arguments],
            input=stdin,
            capture_output=True,
            encoding="utf-8",
            env=self._environment | {"PGPASSWORD": self.password, "PGCLIENTENCODING": "UTF8"},
            cwd=self.directory,
            **(self._credentials() if as_server else {}),
        )
        if done.returncode != 0:
            raise PostgresClusterError(f"{program} failed: {done.stderr.strip()}")
        output: str = done.stdout
        return output.rstrip("\n")

    def _credentials(self) -> dict[str, Any]:
        if self._user is None:
            return {}
        return {"user": self._user.pw_uid, "group": self._user.pw_gid, "extra_groups": ()}

    def _log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:])


def _server_user() -> pwd.struct_passwd | None:
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise PostgresClusterError("there is no user `postgres`; run scripts/bootstrap to install PostgreSQL") from None


def free_port() -> int:
    """A port of the loopback interface on which no process listens right now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
