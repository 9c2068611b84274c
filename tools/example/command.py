"""`scripts/example`: the queues, the orders and the totals of the worked example."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import nullcontext

import click

from queue_pipeline.cli.failures import report
from queue_pipeline.cli.output import write_json, write_lines, write_table
from queue_pipeline.cli.parameters import POSITIVE
from queue_pipeline.cli.progress import progress
from queue_pipeline.cli.session import Session, shared_options, with_session
from queue_pipeline.transport.texts import count_of
from tools.example import shop
from tools.example.orders import random_seed
from tools.example.samples import samples

DEFAULT_COUNT = 2_000
DEFAULT_BAD = 0.01
MANY = 5_000
"""Fewer than this are sent before a progress bar could be read."""


@click.group(invoke_without_command=True)
@shared_options
@click.pass_context
def example(context: click.Context) -> None:
    """Try the worked example, the pipeline orders."""
    if context.invoked_subcommand is None:
        click.echo(context.get_help(), err=True)
        context.exit(2)


@example.command()
@with_session
def install(session: Session) -> None:
    """Create the queues orders, billing, shipping and error, and the table order_totals.

    Existing tables are left unchanged.
    """
    with session.transport() as transport:
        installed = shop.install(transport)
    if session.json:
        write_json({"tables": [{"table": done.table, "created": done.created} for done in installed]})
    else:
        write_table(("table", "state"), [(d.table, "created" if d.created else "already there") for d in installed])


@example.command()
@click.option(
    "--count", type=POSITIVE, metavar="N", default=DEFAULT_COUNT, show_default=True, help="How many orders to send."
)
@click.option(
    "--bad",
    type=click.FloatRange(0, 1),
    metavar="SHARE",
    default=DEFAULT_BAD,
    show_default=True,
    help="Share of orders that cannot be processed, of several kinds.",
)
@click.option("--seed", type=click.IntRange(0, 0xFFFFFF), metavar="N", help="Send the orders of an earlier time again.")
@click.option(
    "--rate",
    type=click.FloatRange(0, shop.HIGHEST_RATE, min_open=True),
    metavar="N",
    help="Orders a second, a few at a time; without it all at once, in one transaction.",
)
@with_session
def send(session: Session, count: int, bad: float, seed: int | None, rate: float | None) -> None:
    """Send sample orders to the queue orders."""
    chosen = random_seed() if seed is None else seed
    bar = nullcontext() if count < MANY and rate is None else progress(session, "sending", count)
    with session.transport() as transport, bar as on_progress:
        table = transport.resolve(shop.ORDERS)
        sent = shop.send(transport, samples(count, bad=bad, seed=chosen), rate=rate, on_progress=on_progress)
    kinds = Counter({kind: number for kind, number in sent.items() if kind is not None})
    if session.json:
        write_json({"queue": table.canonical, "sent": sent.total(), "seed": chosen, "bad": dict(kinds)})
        return
    write_lines(f"sent {count_of(sent.total(), 'order')} to {table} (seed {chosen})")
    if kinds:
        listed = ", ".join(f"{number:,} {kind}" for kind, number in kinds.items())
        write_lines(f"{kinds.total():,} of them for the error queue: {listed}")


@example.command()
@with_session
def totals(session: Session) -> None:
    """Print the table order_totals, which the pipeline writes together with its sends."""
    with session.transport() as transport:
        found = shop.totals(transport)
    if session.json:
        rows = [{"country": t.country, "day": t.day, "orders": t.orders, "revenue": str(t.revenue)} for t in found]
        write_json({"totals": rows})
    elif found:
        lines = [(t.country, t.day, f"{t.orders:,}", f"{t.revenue:,}") for t in found]
        orders, revenue = sum(t.orders for t in found), sum(t.revenue for t in found)
        columns = ("country", "day", "orders", "revenue")
        write_table(columns, [*lines, ("all", None, f"{orders:,}", f"{revenue:,}")], figures=columns[2:])
    else:
        write_lines("no order was processed yet")


def main(arguments: Sequence[str] | None = None, session: Session | None = None) -> int:
    """Run a command, by default that of this process; errors are reported as `queue-pipeline` reports them."""
    session = session or Session()
    try:
        code = example.main(arguments, prog_name="scripts/example", standalone_mode=False, obj=session)
    except (Exception, KeyboardInterrupt) as error:
        code = report(error, session)
    return code if isinstance(code, int) else 0
