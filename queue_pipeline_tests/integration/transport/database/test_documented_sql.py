"""The SQL that README.md and docs/ show for PostgreSQL runs there, as the account that owns the queues."""

import pytest

from queue_pipeline import QueueTransport
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline_tests.support.pages import PAGES, blocks

SHOWN = [block for page in PAGES for block in blocks(page) if block.language == "sql"]
ROLES, DATABASES = ("queue_install", "queue_run", "queue_executor", "dagster"), ("shop", "dagster")


@pytest.fixture(scope="module")
def database(postgres):
    """A database with queues of both kinds and a table of the user's own."""
    postgres.create_database("pages")
    settings = NGinnSettings(aliases=("ShopDb",))
    with QueueTransport(postgres.url("pages"), nginn=settings) as transport:
        transport.install("orders", "billing", "sql://ShopDb/Orders")
    postgres.run_sql("CREATE TABLE order_totals (country text PRIMARY KEY)", "pages")
    # What the first statements of docs/postgresql.md make is there for the others, in whatever order they run.
    (setup,) = [block.text for block in SHOWN if "CREATE ROLE queue_install" in block.text]
    postgres.run_sql(setup, "pages")
    yield "pages"
    for name in (*DATABASES, "pages"):
        postgres.run_sql(f"DROP DATABASE {name} WITH (FORCE)")
    postgres.run_sql(f"DROP ROLE {', '.join(ROLES)}")


@pytest.mark.parametrize("block", [pytest.param(one, id=one.name) for one in SHOWN if "CREATE ROLE" not in one.text])
def test_statements_that_are_shown_for_postgresql_run(block, postgres, database):
    postgres.run_sql(block.text, database)


def test_the_roles_of_the_documentation_are_there_and_may_do_what_they_were_granted(postgres, database):
    granted = postgres.run_sql("SELECT has_database_privilege('queue_run', 'shop', 'CONNECT')", database)
    owner = postgres.run_sql("SELECT pg_get_userbyid(datdba) FROM pg_database WHERE datname = 'dagster'", database)
    assert (granted.split()[-1], owner.split()[-1]) == ("t", "dagster")
