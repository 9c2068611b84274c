"""Hooks of MkDocs: pages from outside of docs/, references made from the code, links that lead to pages of the site."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import TYPE_CHECKING

import click

from queue_pipeline.cli.app import app

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).parents[1]
OUTSIDE = {"README.md": "index.md", "CHANGELOG.md": "changelog.md", "CONTRIBUTING.md": "contributing.md"}
"""Files beside docs/ that are pages of the site."""


def on_files(files, config):  # type: ignore[no-untyped-def]
    """Add the pages that lie outside of docs/."""
    from mkdocs.structure.files import File

    for source, page in OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / source).read_text()))
    return files


def on_page_markdown(markdown, page, **_):  # type: ignore[no-untyped-def]
    """Lead links to pages of the site; add the commands to the page of the command line."""
    text = with_api(as_in_site(markdown, page.file.src_uri))
    return f"{text}\n{''.join(commands())}" if page.file.src_uri == "cli.md" else text


def as_in_site(markdown: str, page: str) -> str:
    """The text with its links led to pages of the site; what is no page stays as a name."""
    folder = ROOT if page in OUTSIDE.values() else (ROOT / "docs" / page).parent

    def led(match: re.Match[str]) -> str:
        text, target = match["text"], match["target"]
        path, _, anchor = target.partition("#")
        file = (folder / path).resolve() if path else None
        if file is None or not file.is_relative_to(ROOT):
            return match[0]
        name = file.relative_to(ROOT).as_posix()
        if file.is_relative_to(ROOT / "docs") and file.is_file():
            depth = 0 if page in OUTSIDE.values() else page.count("/")
            new = "../" * depth + file.relative_to(ROOT / "docs").as_posix()
        elif name in OUTSIDE:
            new = "../" * page.count("/") + OUTSIDE[name]
        else:
            return text if "`" in text else f"`{text}`"
        return f"[{text}]({new}{'#' + anchor if anchor else ''})"

    return re.sub(r"\[(?P<text>[^\]]+)\]\((?!https?://)(?P<target>[^)\s]+)\)", led, markdown)


def with_api(markdown: str) -> str:
    """The text, with each list of public names replaced by what mkdocstrings makes of them."""

    def described(match: re.Match[str]) -> str:
        package = importlib.import_module(match["package"] or "queue_pipeline")
        homes = {name: getattr(package, name).__module__ for name in match["names"].split()}
        return "\n".join(f"::: {home}.{name}\n    options:\n      heading_level: 3\n" for name, home in homes.items())

    return re.sub(r"<!-- api(?: of (?P<package>[\w.]+))?: (?P<names>[\w ]+?) -->", described, markdown)


def commands() -> Iterator[str]:
    """The help of every command, as Markdown."""
    yield from _command(app, "queue-pipeline")


def _command(command: click.Command, name: str) -> Iterator[str]:
    with click.Context(command, info_name=name, max_content_width=100, terminal_width=100) as context:
        title = f"## {name}" if name.count(" ") < 2 else f"### {name}"
        yield f"\n{title}\n\n```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for each, child in sorted(command.commands.items()):
            yield from _command(child, f"{name} {each}")
