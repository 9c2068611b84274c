"""`sql_queue`, the data source of Spark's for programs of one's own: a claim as a frame, a queue as a stream."""
