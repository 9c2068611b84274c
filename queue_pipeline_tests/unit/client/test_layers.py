"""What a program has to load to ask a question."""

import subprocess
import sys


def test_a_client_loads_neither_spark_nor_dagster_nor_what_is_above_it():
    program = "import sys, queue_pipeline.client; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    layers = "import sys, queue_pipeline.client; print(*(name for name in sys.modules if 'queue_pipeline.' in name))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    own = subprocess.run([sys.executable, "-c", layers], capture_output=True, text=True, check=True).stdout.split()
    assert not {"pyspark", "dagster", "pandas", "pyarrow"} & set(loaded)
    assert {name.split(".")[1] for name in own} == {"client", "errors", "transport"}
