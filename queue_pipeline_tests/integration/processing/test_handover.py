"""How a batch reaches a real Spark of this machine: as a file where that works, else over the connection."""

import errno
import logging
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

from queue_pipeline.processing import handover
from queue_pipeline.processing.claimed_batch import SCHEMA
from queue_pipeline.processing.handover import SMALLEST_FILE, handed_over

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, UTC)


class OnPurpose(Exception):
    """Raised by tests inside the block."""


@pytest.fixture(autouse=True)
def nothing_known(spark):
    """Forget what is known of the suite's session, and remember it again after the test."""
    before = handover._reads_files.pop(spark, None)
    yield
    handover._reads_files.pop(spark, None)
    if before is not None:
        handover._reads_files[spark] = before


@pytest.fixture
def folders(tmp_path, monkeypatch):
    """Where temporary folders are made, empty at first."""
    place = tmp_path / "temporary files"
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    return place


@pytest.fixture
def written(monkeypatch):
    """The files that were written, in order."""
    paths, write = [], handover._write

    def watched(rows, path):
        paths.append(path)
        write(rows, path)

    monkeypatch.setattr(handover, "_write", watched)
    return paths


def batch(count, size=0):
    """Messages with every kind of value: nulls, empty ones, times, bytes and letters of many alphabets."""
    rows = [
        {
            "id": f"row{n}",
            "row_version": n * 2**40,
            "headers": f'{{"заголовок":"grüße 😀 {n}"}}',
            "body": b"" if n % 3 == 0 else bytes(range(256)) + bytes(size),
            "message_id": "" if n % 5 == 0 else f"message {n}",
            "correlation_id": None,
            "conversation_id": None if n % 2 else f"разговор {n}",
            "reply_to": "shop@[dbo]" if n % 2 else None,
            "message_type": "Shop.Größe",
            "enqueued": None if n % 4 == 0 else NOW - timedelta(days=n % 20_000, microseconds=n),
            "saga_id": None,
            "saga_type": f"Saga{n}" if n == 7 else None,
        }
        for n in range(count)
    ]
    return pa.Table.from_pylist(rows, SCHEMA)


LARGE, SMALL = batch(2_000, 1_000), batch(20)


def content(frame):
    assert frame.columns == SCHEMA.names
    return sorted(frame.toArrow().to_pylist(), key=lambda row: row["row_version"])


def files(frame):
    """The files that a frame is read from."""
    return [Path(unquote(urlparse(uri).path)) for uri in frame.inputFiles()]


def views(spark):
    return [table.name for table in spark.catalog.listTables() if table.name.startswith("queue_pipeline_")]


def test_the_batches_of_these_tests_are_on_either_side_of_the_limit():
    assert SMALL.nbytes < SMALLEST_FILE <= LARGE.nbytes


# --- as a file ---------------------------------------------------------------------------------------------


def test_a_large_batch_comes_as_a_file_and_as_it_was(spark, folders, written):
    with handed_over(spark, LARGE) as frame:
        assert files(frame) == written
        assert "FileScan parquet" in frame._explain_string()
        assert content(frame) == LARGE.to_pylist()
        assert views(spark) == []


def test_a_file_and_a_frame_that_was_sent_have_columns_of_the_same_types(spark, folders):
    with handed_over(spark, LARGE) as large, handed_over(spark, SMALL) as small:
        assert [(field.name, field.dataType) for field in large.schema] == [
            (field.name, field.dataType) for field in small.schema
        ]


def test_a_large_batch_in_several_chunks_or_in_a_slice_is_whole(spark, folders, written):
    rows = pa.concat_tables([LARGE.slice(5, 900), LARGE.slice(1_000)])
    with handed_over(spark, rows) as frame:
        assert content(frame) == rows.to_pylist()
    assert len(written) == 1


def test_file_and_folder_are_gone_after_the_block(spark, folders, written):
    with handed_over(spark, LARGE):
        assert written[0].is_file()
        assert [written[0].parent] == list(folders.iterdir())
    assert list(folders.iterdir()) == []


def test_file_and_folder_are_gone_after_an_exception(spark, folders, written):
    with pytest.raises(OnPurpose), handed_over(spark, LARGE):
        assert written[0].is_file()
        raise OnPurpose
    assert list(folders.iterdir()) == []
    with handed_over(spark, LARGE) as frame:
        assert files(frame) == written[1:], "an error of the block says nothing about files"


def test_only_its_owner_may_look_into_the_folder(spark, folders, written):
    with handed_over(spark, LARGE):
        assert stat.S_IMODE(written[0].parent.stat().st_mode) == 0o700


def test_each_batch_has_a_file_of_its_own(spark, folders, written):
    other = batch(2_001, 1_000)
    with handed_over(spark, LARGE) as one, handed_over(spark, other) as two:
        assert (one.count(), two.count()) == (2_000, 2_001)
        assert len({path.parent for path in written}) == 2


# --- over the connection -----------------------------------------------------------------------------------


def test_a_small_batch_is_sent_and_comes_as_it_was(spark, folders, written):
    with handed_over(spark, SMALL) as frame:
        assert content(frame) == SMALL.to_pylist()
        assert files(frame) == written == []
        assert list(folders.iterdir()) == []
        assert len(views(spark)) == 1
    assert views(spark) == []


def test_a_view_is_gone_after_an_exception(spark):
    with pytest.raises(OnPurpose), handed_over(spark, SMALL):
        raise OnPurpose
    assert views(spark) == []


def nothing(rows, path):
    """As if the file lay on the disk of another machine."""


def half(rows, path):
    """As if another file lay there."""
    handover.pq.write_table(rows.slice(0, rows.num_rows // 2), path)


def rubbish(rows, path):
    path.write_bytes(b"no columns at all")


@pytest.mark.parametrize("wrong", [nothing, half, rubbish])
def test_a_batch_is_sent_where_spark_cannot_read_its_file_and_no_file_is_tried_again(
    spark, folders, monkeypatch, caplog, wrong
):
    tried = []
    monkeypatch.setattr(handover, "_write", lambda rows, path: (tried.append(path), wrong(rows, path)))
    caplog.set_level(logging.INFO, handover.__name__)
    for _ in range(2):
        with handed_over(spark, LARGE) as frame:
            assert content(frame) == LARGE.to_pylist()
            assert files(frame) == []
            assert list(folders.iterdir()) == [], "the file is of no use any more"
    assert len(tried) == 1
    assert views(spark) == []
    if wrong is not half:
        assert "batches are sent to it instead" in caplog.text


def test_a_batch_is_sent_while_the_disk_is_full_and_files_are_tried_again(spark, folders, written, monkeypatch, caplog):
    def full(rows, path):
        path.write_bytes(b"the first few")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(handover, "_write", full)
        with handed_over(spark, LARGE) as frame:
            assert (frame.count(), files(frame)) == (LARGE.num_rows, [])
            assert list(folders.iterdir()) == []
    assert "No space left on device" in caplog.text
    with handed_over(spark, LARGE) as frame:
        assert files(frame) == written != []


def test_a_batch_is_sent_where_there_is_no_folder_for_files(spark, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with handed_over(spark, LARGE) as frame:
        assert (frame.count(), files(frame)) == (LARGE.num_rows, [])


def test_an_error_of_the_block_about_files_is_the_blocks_own(spark, folders):
    with pytest.raises(OSError, match="of the transform"), handed_over(spark, LARGE):
        raise OSError("of the transform")
    assert list(folders.iterdir()) == []


def test_once_a_file_was_read_no_other_is_tried_first(spark, folders, monkeypatch):
    with handed_over(spark, LARGE):
        pass
    asked = []
    monkeypatch.setattr(type(spark.range(1)), "count", lambda frame: asked.append(frame))
    with handed_over(spark, LARGE) as frame:
        assert len(files(frame)) == 1
    assert asked == []


def test_no_file_is_written_for_a_spark_of_another_machine(spark, folders, written, monkeypatch):
    monkeypatch.setattr(handover, "_LOOPBACK", ())
    for _ in range(2):
        with handed_over(spark, LARGE) as frame:
            assert frame.count() == LARGE.num_rows
            assert files(frame) == []
    assert written == []
