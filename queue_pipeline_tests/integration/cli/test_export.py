"""`--csv` and `--parquet`: messages as tables, for people without Python."""

import base64
import csv
import io

import pyarrow.parquet as pq
import pytest

from queue_pipeline.transport import new_message
from queue_pipeline.transport.layouts.nginn.settings import NGinnSettings
from queue_pipeline_tests.support.command_line import CommandLine
from queue_pipeline_tests.support.databases.failed import NOON, fail, failure

HOSTILE = '{"Name": "\\"quoted\\", and a comma", "Line": "one\ntwo"}'


@pytest.fixture
def transport(sqlite):
    transport = sqlite.transport(nginn=NGinnSettings(aliases=("shop",), endpoint="sql://shop/Web"))
    transport.install("orders")
    transport.send(
        "orders",
        [
            new_message(HOSTILE, message_type="Shop.Order", headers={"Shop.Tenant": "\x1b[31mred"}),
            new_message(b"\x00\xff"),
            *(new_message(f"{n}") for n in range(10)),
        ],
    )
    return transport


@pytest.fixture
def cli(sqlite, transport):
    return CommandLine(sqlite)


def rows(result):
    assert result.code == 0, result.err
    return list(csv.DictReader(io.StringIO(result.out)))


def test_a_queue_as_csv_has_all_messages_with_their_bodies_and_headers(cli, transport):
    found = rows(cli("show", "orders", "--csv", "--headers"))
    assert [row["body"] for row in found] == [HOSTILE, "", *(str(n) for n in range(10))]
    assert found[1]["body_base64"] == base64.b64encode(b"\x00\xff").decode()
    assert (found[0]["message_type"], found[0]["expired"]) == ("Shop.Order", "false")
    assert found[0]["Shop.Tenant"] == "\\x1b[31mred"
    assert len(rows(cli("show", "orders", "--csv", "--max", "3"))) == 3
    assert transport.peek("orders") == 12


def test_a_queue_as_parquet_is_typed(cli, tmp_path):
    file = tmp_path / "orders.parquet"
    written = cli("show", "orders", "--parquet", str(file))
    assert written.out == f"wrote 12 messages of orders to {file}\n"
    table = pq.read_table(file)
    assert table["body"].to_pylist()[2:4] == ["0", "1"]
    assert str(table.schema.field("sent").type) == "timestamp[us, tz=UTC]"
    assert (file.stat().st_mode & 0o777) == 0o600


def test_failed_messages_have_their_reasons_and_can_be_chosen(cli, transport, tmp_path):
    fail(transport, failure(transport, body=b'{"n": 1}'), failure(transport, kind="Shop.LateError"))
    (late,) = rows(cli("errors", "list", "--csv", "--exception", "LateError"))
    assert (late["exception_type"], late["exception_message"]) == ("Shop.LateError", "nothing left")
    assert late["time_of_failure"] == NOON.isoformat()
    assert cli("errors", "list", "--parquet", str(tmp_path / "errors.parquet")).code == 0
    assert pq.read_table(tmp_path / "errors.parquet")["body"].to_pylist() == ['{"n": 1}', "{}"]


def test_one_form_of_output_is_chosen_at_a_time_and_a_file_that_cannot_be_written_is_named(cli, tmp_path):
    both = cli("show", "orders", "--csv", "--json")
    assert (both.code, "choose one of them" in both.err) == (2, True)
    missing = cli("show", "orders", "--parquet", str(tmp_path / "nowhere" / "orders.parquet"))
    assert missing.code != 0
    assert "orders.parquet cannot be written: No such file or directory; choose another file" in missing.err
