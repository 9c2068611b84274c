"""The project's definitions. A new pipeline is a new module here that holds a `QueuePipeline`, and nothing else."""

from queue_pipeline.processing.spark.internals.patches import allow_early_functions

# Before any module here is loaded, in whichever order, by Dagster's processes and by Spark's workers.
allow_early_functions()
