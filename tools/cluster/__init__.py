"""`scripts/cluster`: a real Spark standalone cluster on the loopback address, from the installed pyspark."""
