"""What Spark itself writes on this machine: blocks that spill to disk hold parts of messages."""

import stat

from pyspark import StorageLevel

from queue_pipeline.processing.spark.folder import LOCAL, spark_folder
from queue_pipeline.processing.spark.settings import spark_config


def test_java_makes_its_temporary_files_in_the_folder_of_spark(spark):
    made = spark.sql("SELECT java_method('java.lang.System', 'getProperty', 'java.io.tmpdir')").first()
    assert made[0] == str(spark_folder(spark_config()) / LOCAL)


def test_blocks_are_written_to_a_folder_of_this_user_alone(spark):
    frame = spark.range(1000).persist(StorageLevel.DISK_ONLY)
    try:
        assert frame.count() == 1000
        folder = spark_folder(spark_config()) / LOCAL
        assert any(path.is_file() for path in folder.glob("blockmgr-*/*/*"))
        for private in (folder, folder.parent, folder.parent.parent):
            assert stat.S_IMODE(private.stat().st_mode) == 0o700
    finally:
        frame.unpersist()
