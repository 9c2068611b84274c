"""The units, compose file, manifests and crontab line of docs/deploy.md: they can be read, and their commands exist."""

from __future__ import annotations

import configparser
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml  # type: ignore[import-untyped]

from queue_pipeline.cli.commands.health import health

ROOT = Path(__file__).resolve().parents[3]
PAGE = (ROOT / "docs/deploy.md").read_text()
SERVICES = PAGE.partition("\n## Services\n")[2].partition("\n## ")[0]
UNITS = dict(re.findall(r"```ini\n# ([\w.-]+)[^\n]*\n(.*?)```", SERVICES, re.S))
MANIFESTS = [yaml.safe_load(text) for text in re.findall(r"```yaml\n(.*?)```", SERVICES, re.S)]
SECTIONS = {"service": {"Unit", "Service"}, "timer": {"Unit", "Timer", "Install"}}


def unit(name: str) -> configparser.ConfigParser:
    # systemd allows a key twice, and its values hold percent signs and colons.
    parser = configparser.ConfigParser(strict=False, interpolation=None, delimiters=("=",))
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(UNITS[name])
    return parser


@pytest.mark.parametrize("name", UNITS)
def test_units_have_their_sections_and_absolute_programs(name: str) -> None:
    parser = unit(name)
    kind = name.rpartition(".")[2]
    assert set(parser.sections()) - {"Install"} == SECTIONS[kind] - {"Install"}
    if kind == "service":
        program = shlex.split(parser["Service"]["ExecStart"])[0]
        assert program.startswith("/") or program == "systemctl"


@pytest.mark.parametrize("name", UNITS)
def test_units_that_a_unit_names_are_there(name: str) -> None:
    parser = unit(name)
    named = [word for key in ("Requires", "OnFailure") for word in parser["Unit"].get(key, "").split()]
    assert [word for word in named if word not in UNITS] == []


def test_the_storage_is_created_before_anything_starts() -> None:
    for name in ("queue-pipeline-code.service", "queue-pipeline-daemon.service"):
        assert unit(name)["Unit"]["Requires"] == "queue-pipeline-storage.service"
        assert "queue-pipeline-storage.service" in unit(name)["Unit"]["After"].split()
    compose, deployment = MANIFESTS
    assert compose["services"]["code"]["depends_on"]["storage"]["condition"] == "service_completed_successfully"
    (first,) = deployment["spec"]["template"]["spec"]["initContainers"]
    assert first["command"] == ["dagster", "instance", "migrate"]


def test_a_code_server_has_time_to_stop_and_is_probed_everywhere() -> None:
    compose, deployment = MANIFESTS
    pod = deployment["spec"]["template"]["spec"]
    assert int(unit("queue-pipeline-code.service")["Service"]["TimeoutStopSec"]) == 120
    assert compose["services"]["code"]["stop_grace_period"] == "2m"
    assert pod["terminationGracePeriodSeconds"] == 120
    (container,) = pod["containers"]
    assert container["livenessProbe"]["exec"]["command"] == ["queue-pipeline", "health", "--check", "ticks"]
    assert compose["services"]["code"]["healthcheck"]["test"] == "queue-pipeline health --check ticks"


def commands() -> list[list[str]]:
    """The arguments of every health command of the section."""
    texts = re.findall(r"queue-pipeline health((?: --?[\w-]+| [\w.]+)*)", SERVICES.replace("2>&1", ""))
    return [text.split() for text in dict.fromkeys(texts)]


@pytest.mark.parametrize("arguments", commands(), ids=" ".join)
def test_every_health_command_is_understood(arguments: list[str]) -> None:
    parsed: dict[str, Any] = health.make_context("health", list(arguments)).params
    assert parsed["tick_seconds"] == 120


def test_every_check_and_limit_is_in_the_table() -> None:
    options = {parameter.name: parameter for parameter in health.params}
    checks = options["checks"].type.choices  # type: ignore[attr-defined]
    assert [check for check in checks if f"`{check}`" not in SERVICES] == []
    limits = [name for name in options if name and name.endswith("_seconds")]
    assert [name for name in limits if f"`--{name.replace('_', '-')}" not in SERVICES] == []
