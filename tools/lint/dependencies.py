"""Dependencies: every package is pinned in constraints.txt, to a version that pyproject.toml allows."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from importlib import metadata

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tools.lint.files import ROOT

PIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*==[0-9][A-Za-z0-9.+!]*")


def bad_pins(constraints: list[str], declared: list[Requirement]) -> Iterator[str]:
    """Lines that are no pin, and declared dependencies that are not pinned or pinned to a version out of bounds."""
    for number, line in enumerate(constraints, 1):
        if not PIN.fullmatch(line):
            yield f"constraints.txt:{number}: is not NAME==VERSION: {line}"
    pins = _pins(constraints)
    for requirement in declared:
        pinned = pins.get(canonicalize_name(requirement.name))
        if pinned is None:
            yield f"constraints.txt: {requirement.name} is declared in pyproject.toml and not pinned"
        elif not requirement.specifier.contains(pinned):
            yield f"constraints.txt: {requirement.name}=={pinned} is outside of {requirement}"


def find_bad_pins() -> Iterator[str]:
    """The same for this project."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    texts = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    texts += [text for extra in project["project"]["optional-dependencies"].values() for text in extra]
    return bad_pins(_constraints(), [Requirement(text) for text in texts])


def find_missing_pins() -> Iterator[str]:
    """Dependencies of dependencies that are installed here and not pinned."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    waiting = set(_required_by("queue_pipeline", frozenset(project["optional-dependencies"])))
    reached: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        reached.add(step := waiting.pop())
        try:
            waiting |= set(_required_by(*step)) - reached
        except metadata.PackageNotFoundError:
            continue  # of an extra that is not installed here
    for name in sorted({name for name, _ in reached} - _pins(_constraints()).keys()):
        yield f"constraints.txt: {name}, a dependency of a dependency, is not pinned"


def _required_by(name: str, extras: frozenset[str]) -> Iterator[tuple[str, frozenset[str]]]:
    for text in metadata.requires(name) or ():
        requirement = Requirement(text)
        marker = requirement.marker
        if marker is None or any(marker.evaluate({"extra": extra}) for extra in ("", *extras)):
            yield canonicalize_name(requirement.name), frozenset(requirement.extras)


def _constraints() -> list[str]:
    return (ROOT / "constraints.txt").read_text().splitlines()


def _pins(lines: list[str]) -> dict[str, Version]:
    pairs = (line.split("==") for line in lines if PIN.fullmatch(line))
    return {canonicalize_name(name): Version(version) for name, version in pairs}
