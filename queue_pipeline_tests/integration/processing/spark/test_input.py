"""How a batch reaches a real Spark of this machine: as a file where that works, else over the connection."""

import errno
import logging
import stat
import tempfile
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from urllib.parse import unquote, urlparse

import pyarrow as pa
import pytest

from queue_pipeline.processing.batch.claimed_batch import SCHEMA
from queue_pipeline.processing.spark import input as handover
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.input import SMALLEST_FILE, Handover

NOW = datetime(2026, 3, 4, 5, 6, 7, 89, UTC)


class OnPurpose(Exception):
    """Raised by tests inside the block."""


@pytest.fixture
def session(spark):
    """A session as each attempt has one."""
    with AttemptSessions(lambda: spark).session() as session:
        yield session


@pytest.fixture
def hand_over(session):
    """Hands batches to that session; knows nothing of it at first."""
    return partial(Handover().frame, session)


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


def views(session):
    return [table.name for table in session.catalog.listTables() if table.name.startswith("queue_pipeline_")]


def test_the_batches_of_these_tests_are_on_either_side_of_the_limit():
    assert SMALL.nbytes < SMALLEST_FILE <= LARGE.nbytes


# --- as a file ---------------------------------------------------------------------------------------------


def test_a_large_batch_comes_as_a_file_and_as_it_was(session, hand_over, folders, written):
    with hand_over(LARGE) as frame:
        assert files(frame) == written
        assert "FileScan parquet" in frame._explain_string()
        assert content(frame) == LARGE.to_pylist()
        assert views(session) == []


def test_a_file_and_a_frame_that_was_sent_have_columns_of_the_same_types(hand_over, folders):
    with hand_over(LARGE) as large, hand_over(SMALL) as small:
        assert [(field.name, field.dataType) for field in large.schema] == [
            (field.name, field.dataType) for field in small.schema
        ]


def test_a_large_batch_in_several_chunks_or_in_a_slice_is_complete(hand_over, folders, written):
    rows = pa.concat_tables([LARGE.slice(5, 900), LARGE.slice(1_000)])
    with hand_over(rows) as frame:
        assert content(frame) == rows.to_pylist()
    assert len(written) == 1


def test_file_and_folder_are_gone_after_the_block(hand_over, folders, written):
    with hand_over(LARGE):
        assert written[0].is_file()
        assert [written[0].parent] == list(folders.iterdir())
    assert list(folders.iterdir()) == []


def test_file_and_folder_are_gone_after_an_exception(hand_over, folders, written):
    with pytest.raises(OnPurpose), hand_over(LARGE):
        assert written[0].is_file()
        raise OnPurpose
    assert list(folders.iterdir()) == []
    with hand_over(LARGE) as frame:
        assert files(frame) == written[1:], "an error of the block says nothing about files"


def test_only_its_owner_may_look_into_the_folder(hand_over, folders, written):
    with hand_over(LARGE):
        assert stat.S_IMODE(written[0].parent.stat().st_mode) == 0o700


def test_each_batch_has_a_file_of_its_own(hand_over, folders, written):
    other = batch(2_001, 1_000)
    with hand_over(LARGE) as one, hand_over(other) as two:
        assert (one.count(), two.count()) == (2_000, 2_001)
        assert len({path.parent for path in written}) == 2


# --- over the connection -----------------------------------------------------------------------------------


def test_a_small_batch_is_sent_and_comes_as_it_was(spark, session, hand_over, folders, written):
    with hand_over(SMALL) as frame:
        assert content(frame) == SMALL.to_pylist()
        assert files(frame) == written == []
        assert list(folders.iterdir()) == []
        assert len(views(session)) == 1
    assert views(spark) == [], "the view is of the attempt's session alone, and ends with it"


def test_batches_that_were_sent_in_one_session_are_kept_separate(hand_over):
    with hand_over(SMALL) as one, hand_over(SMALL.slice(5)) as other:
        assert (one.count(), other.count()) == (20, 15)


def nothing(rows, path):
    """As if the file lay on the disk of another machine."""


def half(rows, path):
    """As if another file lay there."""
    handover.pq.write_table(rows.slice(0, rows.num_rows // 2), path)


def rubbish(rows, path):
    path.write_bytes(b"no columns at all")


@pytest.mark.parametrize("wrong", [nothing, half, rubbish])
def test_a_batch_is_sent_where_spark_cannot_read_its_file_and_no_file_is_tried_again(
    hand_over, folders, monkeypatch, caplog, wrong
):
    tried = []
    monkeypatch.setattr(handover, "_write", lambda rows, path: (tried.append(path), wrong(rows, path)))
    caplog.set_level(logging.INFO, handover.__name__)
    for _ in range(2):
        with hand_over(LARGE) as frame:
            assert content(frame) == LARGE.to_pylist()
            assert files(frame) == []
            assert list(folders.iterdir()) == [], "the file is of no use any more"
    assert len(tried) == 1
    if wrong is not half:
        assert "batches are sent to it instead" in caplog.text


def test_a_batch_is_sent_while_the_disk_is_full_and_files_are_tried_again(
    hand_over, folders, written, monkeypatch, caplog
):
    def full(rows, path):
        path.write_bytes(b"the first few")
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(handover, "_write", full)
        with hand_over(LARGE) as frame:
            assert (frame.count(), files(frame)) == (LARGE.num_rows, [])
            assert list(folders.iterdir()) == []
    assert "No space left on device" in caplog.text
    with hand_over(LARGE) as frame:
        assert files(frame) == written != []


def test_a_batch_is_sent_where_there_is_no_folder_for_files(hand_over, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "missing"))
    with hand_over(LARGE) as frame:
        assert (frame.count(), files(frame)) == (LARGE.num_rows, [])


def test_a_file_error_raised_in_the_block_is_passed_on_unchanged(hand_over, folders):
    with pytest.raises(OSError, match="of the transform"), hand_over(LARGE):
        raise OSError("of the transform")
    assert list(folders.iterdir()) == []


def test_after_a_first_file_was_read_later_files_are_not_tried(session, hand_over, folders, monkeypatch):
    with hand_over(LARGE):
        pass
    asked = []
    monkeypatch.setattr(type(session.range(1)), "count", lambda frame: asked.append(frame))
    with hand_over(LARGE) as frame:
        assert len(files(frame)) == 1
    assert asked == []


def test_no_file_is_written_for_a_spark_of_another_machine(hand_over, folders, written, monkeypatch):
    monkeypatch.setattr(handover, "_LOOPBACK", ())
    for _ in range(2):
        with hand_over(LARGE) as frame:
            assert frame.count() == LARGE.num_rows
            assert files(frame) == []
    assert written == []


def test_a_result_of_one_handover_does_not_apply_to_another_spark(session, folders, written, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(handover, "_LOOPBACK", ())
        with Handover().frame(session, LARGE) as frame:
            assert files(frame) == []
    with Handover().frame(session, LARGE) as frame:
        assert files(frame) == written != []


@pytest.mark.parametrize("moment", [datetime(1, 1, 1, tzinfo=UTC), datetime(1582, 10, 10, 1, 2, 3, 4, UTC)])
def test_times_before_todays_calendar_arrive_unchanged_either_way(hand_over, folders, moment):
    """Some senders write the first moment that their platform knows."""
    for rows in (LARGE, SMALL):
        times = pa.array([moment] * rows.num_rows, SCHEMA.field("enqueued").type)
        ancient = rows.set_column(SCHEMA.names.index("enqueued"), SCHEMA.field("enqueued"), times)
        with hand_over(ancient) as frame:
            assert {row["enqueued"] for row in content(frame)} == {moment}


@pytest.mark.parametrize("rows", [1, 30_000], ids=["sent", "as a file"])
def test_a_time_without_a_zone_stays_without_one(spark, rows):
    moment = datetime(2026, 3, 29, 2, 30)
    table = pa.table(
        {
            "at": pa.array([moment] * rows, pa.timestamp("us")),
            "instant": pa.array([moment] * rows, pa.timestamp("us", "UTC")),
            "filler": ["x" * 40] * rows,
        }
    )
    with Handover().frame(spark, table) as frame:
        assert [frame.schema[name].dataType.typeName() for name in ("at", "instant")] == ["timestamp_ntz", "timestamp"]
        (found,) = frame.select("at").distinct().collect()
    assert found["at"] == moment
