"""`--csv` and `--parquet FILE`: messages as a table for other programs, one row per message."""

from __future__ import annotations

import base64
import csv
import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from queue_pipeline.cli.output import visible, write, write_lines
from queue_pipeline.cli.parameters import options
from queue_pipeline.cli.rendering import body_text
from queue_pipeline.cli.session import Session
from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.private_files import make_private_file
from queue_pipeline.transport.texts import count_of

if TYPE_CHECKING:
    import pyarrow as pa

    from queue_pipeline.transport.inspection.browsed import Browsed

_WRITTEN_AT_ONCE = 1_000_000

export_options = options(
    click.option("--csv", "as_csv", is_flag=True, help="Write the same as CSV to stdout."),
    click.option(
        "--parquet",
        type=click.Path(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write a Parquet file, one row per message: all messages, unless a maximum is given.",
    ),
)
"""Where a table of all messages goes, instead of a list of the first for people."""


def check_export(session: Session, as_csv: bool, parquet: Path | None) -> bool:
    """Whether a table is asked for; one form of output at a time."""
    if sum((session.json, as_csv, parquet is not None)) > 1:
        raise click.UsageError("--csv, --parquet and --json are given together; choose one of them")
    return as_csv or parquet is not None


def write_export(browsed: Browsed, parquet: Path | None, *, headers: bool) -> None:
    """A table to a Parquet file, else as CSV to stdout; all headers become columns on request."""
    if parquet is None:
        _write_csv(browsed.columns(headers=headers))
        return
    table = _text_bodies(browsed.to_arrow(headers=headers))
    import pyarrow.parquet as pq

    try:
        make_private_file(parquet)
        pq.write_table(table, parquet)
    except OSError as error:
        raise ConfigurationError(
            f"{parquet} cannot be written: {error.strerror or error}; choose another file"
        ) from None
    write_lines(f"wrote {count_of(len(browsed), 'message')} of {browsed.queue} to {parquet}")


def _text_bodies(table: pa.Table) -> pa.Table:
    import pyarrow as pa

    texts, coded = _texts(table["body"].to_pylist())
    at = table.column_names.index("body")
    table = table.set_column(at, "body", pa.array(texts, pa.string()))
    return table.add_column(at + 1, "body_base64", pa.array(coded, pa.string()))


def _texts(bodies: list[Any]) -> tuple[list[str | None], list[str | None]]:
    """Bodies as text, and those that are no text in Base64."""
    texts = [body_text(body) for body in bodies]
    coded = [
        base64.b64encode(body).decode() if text is None else None for body, text in zip(bodies, texts, strict=True)
    ]
    return texts, coded


def _write_csv(columns: dict[str, list[Any]]) -> None:
    names = list(columns)
    names.insert(names.index("body") + 1, "body_base64")
    columns["body"], columns["body_base64"] = _texts(columns["body"])
    written = io.StringIO()
    rows = csv.writer(written, lineterminator="\n")
    rows.writerow(map(visible, names))
    for row in zip(*(columns[name] for name in names), strict=True):
        rows.writerow(map(_cell, row))
        if written.tell() > _WRITTEN_AT_ONCE:
            write(written.getvalue())
            written.seek(0)
            written.truncate()
    write(written.getvalue())


def _cell(value: Any) -> Any:
    """Moments as ISO 8601; no message can steer a terminal."""
    if isinstance(value, bool):
        return str(value).lower()
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return visible(value) if isinstance(value, str) else value
