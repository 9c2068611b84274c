"""Layers point down, one name for one class, SQL stands in sql/, and header names in one module."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

from tools.lint.files import ROOT

PACKAGE = ROOT / "queue_pipeline"
TRANSPORT = PACKAGE / "transport"
HEADERS = TRANSPORT / "messages" / "headers.py"
STATEMENTS = TRANSPORT / "database" / "statements.py"
NOT_FOR_TRANSPORT = {"dagster", "pyspark", "pandas", "click", "rich"}
SQL = re.compile(
    r"\bselect\b.*(?:\bfrom\b|\d)|\binsert\s+into\b|\bdelete\s+from\b|\bupdate\s+\S+\s+set\b|\bmerge\s+into\b|"
    r"^\s*(?:(?:create|alter|drop|truncate)\s+(?:table|index|unique|schema|sequence)|begin|pragma|exec|grant)\b",
    re.IGNORECASE | re.DOTALL,
)
# Asking whether a connection lives, and beginning a transaction, need no file; claims.begin is a section.
ALLOWED_SQL = {"SELECT 1", "BEGIN", "BEGIN IMMEDIATE", "begin"}
MOST_MODULES, MOST_LINES = 15, 300
BELOW = ("queue_pipeline.transport.", "queue_pipeline.errors.")
"""What the transport may import of the package."""
LAYOUTS = "queue_pipeline.transport.layouts"
KNOW_LAYOUTS = {
    "queue_pipeline/__init__.py": "exports the settings of NGinn queues",
    "queue_pipeline/transport/parts.py": "puts the layouts together",
    "queue_pipeline/transport/addresses/queues.py": "reads addresses of the form sql://alias/Queue",
    "queue_pipeline/transport/settings.py": "has the settings of NGinn queues",
    "queue_pipeline/transport/failed/failed_messages.py": "error queues have the layout of NServiceBus",
    "queue_pipeline/transport/failed/returns.py": "error queues have the layout of NServiceBus",
    "queue_pipeline/orchestration/resources.py": "has the settings of NGinn queues",
    "queue_pipeline/cli/session.py": "has the settings of NGinn queues",
    "queue_pipeline/cli/app.py": "names the settings of NGinn queues",
    "queue_pipeline/cli/commands/nginn.py": "has the commands for NGinn queues only",
}
HEADER = re.compile(r"NServiceBus\.|\$\.diagnostics")


def imports(source: str) -> set[str]:
    """What a module imports, by full name."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found |= {module} | {f"{module}.{alias.name}" for alias in node.names}
    return found


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Every string of a module with its line, except docstrings and descriptions of attributes."""
    tree = ast.parse(source)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def upper_imports(source: str) -> set[str]:
    """What a module of the transport imports and must not: it knows databases only."""
    return {
        name
        for name in imports(source)
        if name.startswith(".")  # imports are absolute here
        or name.split(".")[0] in NOT_FOR_TRANSPORT
        or (name.split(".")[0] == "queue_pipeline" and not f"{name}.".startswith(BELOW))
    }


def find_imports_of_upper_layers() -> Iterator[str]:
    """Modules of the transport that import a layer above, and a loader of statements that needs SQLAlchemy."""
    for path in sorted(TRANSPORT.rglob("*.py")):
        for name in sorted(upper_imports(path.read_text())):
            yield f"{_name(path)}: the transport imports {name}"
    # The command line prints help, and documents are made, without SQLAlchemy.
    for name in sorted(imports(STATEMENTS.read_text())):
        if name.split(".")[0] in ("sqlalchemy", "queue_pipeline"):
            yield f"{_name(STATEMENTS)}: the loader of statements imports {name}"


def layout_imports(source: str) -> set[str]:
    """What a module imports of one layout, while it should ask the layout of a queue."""
    return {name for name in imports(source) if f"{name}.".startswith((f"{LAYOUTS}.nginn.", f"{LAYOUTS}.nservicebus."))}


def find_imports_of_a_layout() -> Iterator[str]:
    """Modules that know NServiceBus's tables or NGinn's, apart from the few that have to."""
    needless = set(KNOW_LAYOUTS)
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.is_relative_to(TRANSPORT / "layouts"):
            continue
        found = layout_imports(path.read_text())
        if found and _name(path) not in KNOW_LAYOUTS:
            yield f"{_name(path)}: imports {min(found)}; ask the layout of the queue (transport/layouts/layout.py)"
        if found:
            needless.discard(_name(path))
    for name in sorted(needless):
        yield f"tools/lint/layers.py: KNOW_LAYOUTS has {name}, which imports no layout"


def find_classes_of_one_name() -> Iterator[str]:
    """Classes of the package that have the name of another one."""
    places: dict[str, str] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.parse(path.read_text()).body:
            if isinstance(node, ast.ClassDef):
                other = places.setdefault(node.name, _name(path))
                if other != _name(path):
                    yield f"{_name(path)}:{node.lineno}: class {node.name} is in {other}, too"


def find_rooms_that_are_too_large() -> Iterator[str]:
    """Folders of more than 15 modules, and modules of more than 300 lines: likely two ideas in one."""
    for folder in sorted({path.parent for path in PACKAGE.rglob("*.py")}):
        modules = [path for path in folder.glob("*.py") if path.name != "__init__.py"]
        if len(modules) > MOST_MODULES:
            yield f"{_name(folder)}: {len(modules)} modules; up to {MOST_MODULES} are easy to survey"
        for path in modules:
            if (lines := len(path.read_text().splitlines())) > MOST_LINES:
                yield f"{_name(path)}: {lines} lines; up to {MOST_LINES}"


def find_sql_in_python() -> Iterator[str]:
    """Statements that stand in a module and not in sql/."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for line, text in texts(path.read_text()):
            if SQL.search(text) and text not in ALLOWED_SQL:
                yield f"{_name(path)}:{line}: a statement belongs into sql/: {text[:60]!r}"


def find_header_names() -> Iterator[str]:
    """Header names that are spelled out in another module than transport/messages/headers.py."""
    for path in sorted(PACKAGE.rglob("*.py")):
        if path != HEADERS:
            for line, text in texts(path.read_text()):
                if HEADER.search(text):
                    yield f"{_name(path)}:{line}: a header name belongs into {_name(HEADERS)}: {text[:60]!r}"


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()
