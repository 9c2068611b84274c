import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from shutil import rmtree

import pytest

from tools.postgres_cluster import PostgresCluster, PostgresClusterError, find_binaries

pytestmark = pytest.mark.heavy


@pytest.fixture(scope="module")
def cluster() -> Iterator[PostgresCluster]:
    with PostgresCluster() as running:
        yield running


def process_exists(pid: int) -> bool:
    # A zombie is dead; only its parent has not asked yet.
    try:
        return "\nState:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(condition: Callable[[], bool], seconds: float = 20) -> bool:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.05)
    return True


def test_the_cluster_takes_connections_as_its_own_superuser_in_utf8(cluster: PostgresCluster) -> None:
    assert cluster.is_running()
    assert cluster.run_sql("SELECT current_user, current_setting('server_encoding')") == "queue_pipeline|UTF8"
    assert cluster.run_sql("SELECT 'žluťoučký 🐎'") == "žluťoučký 🐎"


def test_the_cluster_listens_on_the_loopback_interface_only_and_requires_the_password(cluster: PostgresCluster) -> None:
    assert cluster.run_sql("SHOW listen_addresses") == "127.0.0.1"
    stranger = subprocess.run(
        ["psql", "-w", cluster.url(password="not the password"), "-c", "SELECT 1"],
        capture_output=True,
        text=True,
    )
    assert stranger.returncode != 0
    assert "password authentication failed" in stranger.stderr


def test_the_server_does_not_run_as_root(cluster: PostgresCluster) -> None:
    status = Path(f"/proc/{cluster.pid}/status").read_text()
    (uids,) = (line.split()[1:] for line in status.splitlines() if line.startswith("Uid:"))
    assert "0" not in uids


def test_the_cluster_gives_the_url_of_a_database_that_it_created(cluster: PostgresCluster) -> None:
    cluster.create_database('order "queue"')
    assert cluster.run_sql("SELECT current_database()", 'order "queue"') == 'order "queue"'
    answer = subprocess.check_output(["psql", "-XAt", cluster.url('order "queue"'), "-c", "SELECT current_database()"])
    assert answer.decode().strip() == 'order "queue"'
    assert cluster.url("db", "a:b", "c@d").endswith(f"//a%3Ab:c%40d@127.0.0.1:{cluster.port}/db")


def test_an_error_of_psql_is_reported(cluster: PostgresCluster) -> None:
    with pytest.raises(PostgresClusterError, match='relation "missing" does not exist'):
        cluster.run_sql("SELECT * FROM missing")


@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_the_cluster_keeps_committed_data_and_its_port_across_a_restart(cluster: PostgresCluster, mode) -> None:
    before = cluster.pid, cluster.port
    cluster.run_sql(f"CREATE TABLE kept_{mode} AS SELECT generate_series(1, 1000) AS n")
    cluster.restart(mode)
    assert cluster.is_running()
    assert cluster.pid != before[0]
    assert cluster.port == before[1]
    assert cluster.run_sql(f"SELECT count(*) FROM kept_{mode}") == "1000"


def test_settings_and_fsync_are_applied() -> None:
    with PostgresCluster(fsync=True, settings={"work_mem": "7MB", "TimeZone": "Asia/Kolkata"}) as cluster:
        assert cluster.run_sql("SHOW fsync") == "on"
        assert cluster.run_sql("SHOW work_mem") == "7MB"
        assert cluster.run_sql("SHOW TimeZone") == "Asia/Kolkata"


def test_a_failed_start_is_reported_with_its_reason_and_leaves_nothing() -> None:
    cluster = PostgresCluster(settings={"no_such_setting": "1"})
    with pytest.raises(PostgresClusterError, match="no_such_setting"), cluster:
        pass
    assert not cluster.is_running()
    assert not cluster.directory.exists()


def test_the_cluster_is_gone_after_close() -> None:
    cluster = PostgresCluster()
    cluster.start()
    pid = cluster.pid
    assert process_exists(pid)
    cluster.close()
    assert not cluster.is_running()
    assert not process_exists(pid)
    assert not cluster.directory.exists()


def test_the_cluster_is_gone_when_the_process_that_started_it_is_killed() -> None:
    program = (
        "from tools.postgres_cluster import PostgresCluster\n"
        "import time\n"
        "cluster = PostgresCluster()\n"
        "cluster.start()\n"
        "print(cluster.pid, cluster.directory, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        pid, directory = owner.stdout.readline().split(maxsplit=1)
        try:
            assert process_exists(int(pid))
            os.kill(owner.pid, signal.SIGKILL)
            owner.wait()
            assert wait_until(lambda: not process_exists(int(pid)))
        finally:
            owner.kill()
            rmtree(directory.strip(), ignore_errors=True)


def test_without_postgresql_the_error_names_the_remedy(tmp_path: Path) -> None:
    with pytest.raises(PostgresClusterError, match="scripts/bootstrap"):
        find_binaries(tmp_path)


def test_the_newest_installed_version_is_used(tmp_path: Path) -> None:
    for version in ("9.6", "15", "16", "8"):
        (tmp_path / version / "bin").mkdir(parents=True)
        (tmp_path / version / "bin" / "postgres").touch()
    assert find_binaries(tmp_path) == tmp_path / "16" / "bin"
