"""The project's definitions. A new pipeline is a new module here that holds a `QueuePipeline`, and nothing else."""
