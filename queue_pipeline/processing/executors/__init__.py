"""Large batches: Spark's executors read a claim and stage the results themselves, and the driver only completes it."""
