import pytest
import sqlglot

from queue_pipeline.transport.addresses.queues import DELAYED_SUFFIX, AddressBook
from queue_pipeline.transport.database.dialects.lookup import DIALECTS
from queue_pipeline.transport.database.statements import sections
from queue_pipeline.transport.index_audit.description import Index, Sequence, Size, TableDescription
from queue_pipeline.transport.index_audit.findings import Finding, QueueAudit, Severity, missing_columns

INT4 = 2**31 - 1
INT8 = 2**63 - 1
COLUMNS = {
    "sqlserver": {
        "id": "uniqueidentifier",
        "correlationid": "varchar",
        "replytoaddress": "varchar",
        "recoverable": "bit",
        "expires": "datetime",
        "headers": "nvarchar",
        "body": "varbinary",
        "rowversion": "bigint",
    },
    "postgresql": {
        "id": "uuid",
        "expires": "timestamp without time zone",
        "headers": "text",
        "body": "bytea",
        "seq": "bigint",
    },
    "sqlite": {
        "id": "text",
        "expires": "text",
        "headers": "text",
        "body": "blob",
        "rowversion": "integer primary key",
    },
}
INDEXES = {
    "sqlserver": (
        Index("Index_RowVersion", "rowversion", clustered=True),
        Index("Index_Expires", "expires"),
    ),
    "postgresql": (
        Index("orders_pkey", "id"),
        Index("orders_seq_key", "seq"),
        Index("orders_Expires", "expires", filtered=True),
    ),
    "sqlite": (
        Index(None, "rowversion", clustered=True),
        Index("orders_Expires", "expires", filtered=True),
    ),
}
ROW_VERSION = {"sqlserver": "rowversion", "postgresql": "seq", "sqlite": "rowversion"}
every_dialect = pytest.mark.parametrize("dialect", DIALECTS)


def table_of(dialect: str, queue: str = "orders", catalog: str | None = None):
    return AddressBook(DIALECTS[dialect], catalog=catalog).resolve(queue)


def described(dialect: str, *, without: str | None = None, types: dict[str, str] | None = None, **facts):
    """A queue as it is installed, except for what a test says."""
    indexes = facts.pop("indexes", tuple(index for index in INDEXES[dialect] if index.key != without))
    table = facts.pop("table", table_of(dialect))
    return TableDescription(table, COLUMNS[dialect] | (types or {}), indexes, **facts)


def delayed_of(dialect: str, *indexes: Index, **facts) -> TableDescription:
    table = AddressBook(DIALECTS[dialect]).sibling(table_of(dialect), DELAYED_SUFFIX)
    return TableDescription(table, {"due": "datetime"}, indexes, **facts)


def findings(dialect: str, queue: TableDescription, delayed: TableDescription | None = None) -> list[Finding]:
    return QueueAudit(DIALECTS[dialect], queue, delayed).findings()


def codes(dialect: str, queue: TableDescription, delayed: TableDescription | None = None) -> list[str]:
    return [finding.code for finding in findings(dialect, queue, delayed)]


@every_dialect
def test_a_queue_as_it_is_installed_gives_no_finding(dialect):
    assert codes(dialect, described(dialect), delayed_of(dialect, Index("d", "due"))) == []


@every_dialect
@pytest.mark.parametrize("name", ["row_version", "expires"])
def test_a_missing_index_is_one_warning_that_says_what_it_costs_and_how_to_fix_it(dialect, name):
    column = ROW_VERSION[dialect] if name == "row_version" else name
    (finding,) = findings(dialect, described(dialect, without=column))
    assert finding.code == f"missing_{name}_index"
    assert finding.severity is Severity.WARNING
    assert finding.queue == table_of(dialect).canonical
    assert finding.queue in finding.message
    assert finding.cost
    assert table_of(dialect).qualified in finding.fix
    assert str(finding) == f"{finding.message}; {finding.cost}; fix it with: {finding.fix}"


@pytest.mark.parametrize(
    ("dialect", "statement"),
    [
        (
            "sqlserver",
            "CREATE NONCLUSTERED INDEX [Index_Expires] ON [dbo].[orders] ([Expires] ASC) INCLUDE ([Id], [RowVersion]);",
        ),
        (
            "postgresql",
            'CREATE INDEX "orders_Expires" ON "public"."orders" (expires) WHERE expires IS NOT NULL;',
        ),
        ("sqlite", 'CREATE INDEX "orders_Expires" ON "orders" (Expires) WHERE Expires IS NOT NULL;'),
    ],
)
def test_a_missing_expires_index_is_named_and_fixed_as_the_installer_makes_it(dialect, statement):
    (finding,) = findings(dialect, described(dialect, without="expires"))
    assert finding.fix == statement
    assert DIALECTS[dialect].quote("Index_Expires" if dialect == "sqlserver" else "orders_Expires") in (finding.message)


@every_dialect
def test_a_delayed_table_without_an_index_on_due_is_a_finding_of_its_queue(dialect):
    (finding,) = findings(dialect, described(dialect), delayed_of(dialect, Index("other", "id")))
    assert finding.code == "missing_due_index"
    assert finding.queue == table_of(dialect).canonical
    assert delayed_of(dialect).table.qualified in finding.fix


@every_dialect
def test_an_index_counts_whatever_it_is_called(dialect):
    renamed = tuple(Index("a name of somebody's", index.key) for index in INDEXES[dialect])
    assert codes(dialect, described(dialect, indexes=renamed)) == []


@every_dialect
def test_an_index_on_another_column_does_not_count_by_its_name_which_is_not_used_again(
    dialect,
):
    usual = "Index_Expires" if dialect == "sqlserver" else "orders_Expires"
    others = tuple(index for index in INDEXES[dialect] if index.key != "expires")
    misleading = Index(usual.upper(), "id")
    (finding,) = findings(dialect, described(dialect, indexes=(*others, misleading)))
    assert finding.code == "missing_expires_index"
    assert DIALECTS[dialect].quote(f"{usual}_2") in finding.fix


@every_dialect
def test_a_disabled_or_partial_index_does_not_serve_a_receive(dialect):
    expires = tuple(index for index in INDEXES[dialect] if index.key == "expires")
    column = ROW_VERSION[dialect]
    for useless in (Index("x", column, usable=False), Index("x", column, filtered=True)):
        assert codes(dialect, described(dialect, indexes=(*expires, useless))) == ["missing_row_version_index"]


@pytest.mark.parametrize("row_version", [True, False], ids=["clustered", "heap"])
@pytest.mark.parametrize("filtered", [True, False], ids=["filtered", "whole"])
def test_every_structure_that_a_version_of_the_sql_server_transport_made_is_valid(row_version, filtered):
    indexes = (
        Index("Index_RowVersion", "rowversion", clustered=row_version),
        Index("Index_Expires", "expires", filtered=filtered),
    )
    assert codes("sqlserver", described("sqlserver", indexes=indexes)) == []


def test_a_table_of_another_version_without_the_columns_of_version_1_is_valid():
    columns = {name: kind for name, kind in COLUMNS["sqlserver"].items() if name != "recoverable"}
    assert codes("sqlserver", TableDescription(table_of("sqlserver"), columns, INDEXES["sqlserver"])) == []


def test_a_heap_gets_a_clustered_index_and_a_table_clustered_otherwise_one_beside_it():
    (on_heap,) = findings("sqlserver", described("sqlserver", without="rowversion"))
    assert on_heap.fix.startswith("CREATE CLUSTERED INDEX [Index_RowVersion]")
    clustered = (Index("PK", "id", clustered=True), Index("Index_Expires", "expires"))
    (beside,) = findings("sqlserver", described("sqlserver", indexes=clustered))
    assert beside.fix.startswith("CREATE NONCLUSTERED INDEX [Index_RowVersion]")


def test_varchar_headers_are_a_separate_finding():
    (finding,) = findings("sqlserver", described("sqlserver", types={"headers": "varchar"}))
    assert finding.code == "varchar_headers"
    assert "question mark" in finding.cost
    assert finding.fix == "ALTER TABLE [dbo].[orders] ALTER COLUMN [Headers] nvarchar(max) NOT NULL;"


@pytest.mark.parametrize(
    ("dialect", "column", "wrong", "expected"),
    [
        ("sqlserver", "id", "varchar", "uniqueidentifier"),
        ("sqlserver", "body", "nvarchar", "varbinary"),
        ("sqlserver", "headers", "text", "nvarchar"),
        ("sqlserver", "expires", "datetimeoffset", "datetime"),
        ("sqlserver", "rowversion", "int", "bigint"),
        ("postgresql", "id", "text", "uuid"),
        ("postgresql", "body", "text", "bytea"),
        ("postgresql", "headers", "jsonb", "text"),
        ("postgresql", "headers", "character varying(255)", "text"),
        ("postgresql", "expires", "timestamp with time zone", "timestamp without time zone"),
        ("postgresql", "seq", "text", "bigint"),
        ("sqlite", "rowversion", "bigint", "integer primary key"),
        ("sqlite", "rowversion", "", "integer primary key"),
    ],
)
def test_a_wrong_column_type_is_a_warning_with_the_expected_type_and_a_statement(dialect, column, wrong, expected):
    (finding,) = findings(dialect, described(dialect, types={column: wrong}))
    assert finding.code == "wrong_column_type"
    assert finding.severity is Severity.WARNING
    assert f"column {column} is {wrong or 'untyped'} and should be {expected}" in finding.message
    assert table_of(dialect).qualified in finding.fix
    assert "\n" not in str(finding)


@pytest.mark.parametrize(
    ("dialect", "column", "good"),
    [("sqlserver", "expires", "datetime2"), ("postgresql", "headers", "character varying")],
)
def test_a_type_equivalent_to_the_usual_one_is_accepted(dialect, column, good):
    assert codes(dialect, described(dialect, types={column: good})) == []


def test_fixing_a_column_drops_and_makes_again_the_indexes_that_carry_it_under_their_own_names():
    indexes = (Index("ByVersion", "rowversion", clustered=True), Index("ByExpiry", "expires", filtered=True))
    queue = described("sqlserver", types={"rowversion": "int"}, indexes=indexes)
    (finding,) = findings("sqlserver", queue)
    for name in ("[ByVersion]", "[ByExpiry]"):
        assert f"DROP INDEX IF EXISTS {name} ON [dbo].[orders]" in finding.fix
        assert f"CLUSTERED INDEX {name} ON [dbo].[orders]" in finding.fix


@pytest.mark.parametrize(
    ("last", "severity", "used"),
    [
        (0, Severity.INFO, "0 %"),
        (INT4 * 79 // 100, Severity.INFO, "78 %"),
        (INT4 * 81 // 100, Severity.WARNING, "80 %"),
        (INT4, Severity.WARNING, "100 %"),
        (None, Severity.INFO, "an unknown part"),
    ],
)
def test_a_sequence_of_32_bits_is_a_warning_from_80_percent_on(last, severity, used):
    sequence = Sequence('"public"."orders_seq_seq"', INT4, last)
    (finding,) = findings("postgresql", described("postgresql", types={"seq": "integer"}, sequence=sequence))
    assert finding.code == "short_sequence"
    assert finding.severity is severity
    assert f"2,147,483,647, and {used} of that is used" in finding.message
    assert 'ALTER COLUMN seq TYPE bigint;\nALTER SEQUENCE "public"."orders_seq_seq" AS bigint' in finding.fix


def test_a_large_column_behind_a_small_sequence_is_found_too_and_so_is_the_reverse():
    small, large = Sequence("s", INT4, 1), Sequence("s", INT8, 1)
    assert codes("postgresql", described("postgresql", sequence=small)) == ["short_sequence"]
    assert codes("postgresql", described("postgresql", types={"seq": "integer"}, sequence=large)) == (
        ["short_sequence"]
    )
    assert codes("postgresql", described("postgresql", sequence=large)) == []


def test_a_small_column_without_a_sequence_of_its_own_is_fixed_alone():
    (finding,) = findings("postgresql", described("postgresql", types={"seq": "integer"}))
    assert "ALTER COLUMN seq TYPE bigint" in finding.fix
    assert "SEQUENCE" not in finding.fix


@pytest.mark.parametrize("dialect", ["sqlserver", "postgresql"])
@pytest.mark.parametrize(
    ("size", "bloated"),
    [
        (Size(pages=100_000, rows=5), True),
        (Size(pages=1_001, rows=100), True),
        (Size(pages=1_000, rows=0), False),
        (Size(pages=100_000, rows=10_000), False),
        (Size(pages=0, rows=0), False),
    ],
)
def test_many_pages_for_few_rows_are_bloat(dialect, size, bloated):
    expected = ["page_bloat"] if bloated else []
    assert codes(dialect, described(dialect, size=size)) == expected
    assert codes(dialect, described(dialect), delayed_of(dialect, Index("d", "due"), size=size)) == expected


def test_a_bloated_heap_is_rebuilt():
    (finding,) = findings("sqlserver", described("sqlserver", size=Size(100_000, 5)))
    assert "100,000 pages for 5 rows" in finding.message
    assert finding.severity is Severity.WARNING
    assert finding.fix == "ALTER TABLE [dbo].[orders] REBUILD;"


def test_empty_pages_of_postgresql_are_given_back_by_a_vacuum_that_says_that_it_locks():
    (finding,) = findings("postgresql", described("postgresql", size=Size(5_000, 3, dead_rows=10)))
    assert finding.code == "page_bloat"
    assert "locks the table" in finding.cost
    assert finding.fix == 'VACUUM (FULL, ANALYZE) "public"."orders";'


def test_dead_rows_need_a_plain_vacuum_unless_one_ran_just_now():
    size = Size(5_000, 3, dead_rows=40_000)
    (finding,) = findings("postgresql", described("postgresql", size=size))
    assert finding.code == "dead_rows"
    assert finding.fix == 'VACUUM (ANALYZE) "public"."orders";'
    lately = Size(5_000, 3, dead_rows=40_000, vacuumed_lately=True)
    assert codes("postgresql", described("postgresql", size=lately)) == []


def test_warnings_come_before_notes():
    queue = described("postgresql", without="expires", types={"seq": "integer"}, size=Size(5_000, 3, 40_000))
    assert codes("postgresql", queue) == ["missing_expires_index", "dead_rows", "short_sequence"]


@every_dialect
def test_only_missing_indexes_are_reported_before_a_receive(dialect):
    queue = described(dialect, without="expires", types={"body": "text"}, size=Size(100_000, 0))
    assert [f.code for f in QueueAudit(DIALECTS[dialect], queue, None).missing_indexes()] == ["missing_expires_index"]


@every_dialect
def test_a_table_that_is_no_queue_is_known_by_its_columns(dialect):
    table = table_of(dialect)
    assert missing_columns(DIALECTS[dialect], described(dialect)) == []
    other = TableDescription(table, {"id": "integer", "body": "text"}, ())
    assert missing_columns(DIALECTS[dialect], other) == ["expires", "headers", ROW_VERSION[dialect]]


@every_dialect
def test_names_are_quoted_in_every_statement_that_fixes(dialect):
    table = table_of(dialect, {"sqlserver": "o]'; x", "postgresql": '"o""\'; x"', "sqlite": "o\"'; x"}[dialect])
    queue = described(dialect, indexes=(), types={"body": "other", "seq": "integer"}, table=table)
    found = findings(dialect, queue)
    assert len(found) >= 2
    for finding in found:
        assert table.qualified in finding.fix


def test_indexes_are_looked_up_in_the_catalog_of_the_queue():
    """The reference asks the connection's own catalog, and warns of indexes that are there."""
    table = table_of("sqlserver", "orders", catalog="other")
    for name in ("schema.columns", "audit.indexes", "audit.size"):
        text = DIALECTS["sqlserver"].statement(name, queue=table).text
        assert text.count("sys.") == text.count("[other].sys.") > 0
        assert "OBJECT_ID(N'[other].[dbo].[orders]', N'U')" in text


@pytest.mark.parametrize(
    ("dialect", "name"),
    [
        (dialect, section.name)
        for dialect in DIALECTS
        for section in sections(dialect)
        if section.name.startswith("audit.fix_")
    ],
)
def test_every_statement_that_fixes_is_sql_of_its_dialect(dialect, name):
    table = table_of(dialect)
    quoted = {
        key: DIALECTS[dialect].quote(key)
        for key in ("index", "row_version_index", "expires_index", "sequence", "replacement")
    }
    text = DIALECTS[dialect].statement(name, queue=table, delayed=table, **quoted).script
    assert text.endswith(";")
    read = {"sqlserver": "tsql", "postgresql": "postgres", "sqlite": "sqlite"}[dialect]
    parsed = sqlglot.parse(text, read=read)
    assert parsed and all(parsed)
