"""The project's definitions. A new pipeline is a new module here that holds a `QueuePipeline`, and nothing else."""

from queue_pipeline import QueuePipeline

# Imported before any module here, in whichever order Dagster and Spark's workers load them: from then on a module may
# make functions with `@udf` while there is no session.
__all__ = ["QueuePipeline"]
