"""A job of one op, as all jobs beside the pipelines are."""

from typing import Any

import dagster as dg

from queue_pipeline.orchestration.names import Names


def op_job(
    op: dg.OpDefinition, names: Names, name: str, description: str, config: type[dg.Config] | None = None
) -> dg.JobDefinition:
    """The job; the launchpad opens with the default values of the op's config."""
    run_config: Any = None if config is None else {"ops": {op.name: {"config": config().model_dump()}}}

    @dg.job(name=names.named(name), executor_def=dg.in_process_executor, description=description, config=run_config)
    def job() -> None:
        op()

    return job
