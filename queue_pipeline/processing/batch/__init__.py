"""One batch from claim to completion, by one of two backends: this process, or Spark's executors."""
