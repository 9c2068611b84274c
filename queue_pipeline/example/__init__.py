"""Data for the worked example, the pipeline `orders` of the defs folder; nothing here needs Dagster or Spark."""
