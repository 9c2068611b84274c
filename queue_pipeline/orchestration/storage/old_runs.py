"""The job `remove_old_runs`. Dagster itself never removes runs and observations."""

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta

import dagster as dg
from dagster._core.storage.tags import REPOSITORY_LABEL_TAG
from pydantic import Field

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.op_job import op_job
from queue_pipeline.orchestration.storage.dagster_storage import remove_asset_events, remove_run
from queue_pipeline.transport.texts import count_of

REMOVE_JOB = "remove_old_runs"
KEEP_VARIABLE = "QUEUE_PIPELINE_KEEP_DAYS"
LONGEST_DAYS = 3650
LONGEST_SECONDS = 900.0
"""How long a run of the job goes on; the next one continues."""
PAGE = 50
OVER = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


class RemoveConfig(dg.Config):
    """What is old."""

    keep_days: int = Field(
        0, ge=0, le=LONGEST_DAYS, description=f"Remove what is older; 0 means {KEEP_VARIABLE} of the code server."
    )


def keep_days(environment: Mapping[str, str]) -> int | None:
    """For how many days history is kept; None: without limit."""
    given = environment.get(KEEP_VARIABLE, "").strip()
    if not given:
        return None
    if not given.isdecimal() or not 1 <= int(given) <= LONGEST_DAYS:
        raise ConfigurationError(f"{KEEP_VARIABLE} is {given!r}; give a number of days from 1 to {LONGEST_DAYS}")
    return int(given)


def remove_job(job_names: Sequence[str], assets: Sequence[dg.AssetKey], names: Names) -> dg.JobDefinition:
    """The job that removes old runs of some jobs, and old observations and check results of some assets."""

    @dg.op(
        name=names.named("remove_history"),
        description="Removes runs that ended long ago with all that they left, and old observations and check results.",
    )
    def remove(context: dg.OpExecutionContext, config: RemoveConfig) -> None:
        days = config.keep_days or keep_days(os.environ)
        if days is None:
            context.log.info(f"nothing is removed: neither {KEEP_VARIABLE} nor keep_days is given")
            return
        before, end = datetime.now(UTC) - timedelta(days=days), time.monotonic() + LONGEST_SECONDS

        def has_time() -> bool:
            return time.monotonic() < end

        place = context.run.tags.get(REPOSITORY_LABEL_TAG)
        own = [*job_names, names.named(REMOVE_JOB)]
        runs = sum(_remove_runs(context.instance, name, place, before, has_time) for name in own)
        rows = remove_asset_events(context.instance, assets, before.replace(tzinfo=None), has_time)
        context.add_output_metadata({"runs": runs, "events": rows, "older_than_days": days})
        rest = "" if has_time() else "; the next run goes on"
        context.log.info(f"removed {count_of(runs, 'run')} and {rows:,} observations and check results{rest}")

    description = f"Removes runs, observations and check results that are older than {KEEP_VARIABLE} days."
    return op_job(remove, names, REMOVE_JOB, description, RemoveConfig)


def _remove_runs(
    instance: dg.DagsterInstance, job: str, place: str | None, before: datetime, has_time: Callable[[], bool]
) -> int:
    """Remove runs of a job that ended before a time, of the code location of this run only."""
    tags = {} if place is None else {REPOSITORY_LABEL_TAG: place}
    chosen, removed = dg.RunsFilter(job_name=job, statuses=OVER, updated_before=before, tags=tags), 0
    while has_time():
        page = instance.get_runs(chosen, limit=PAGE, ascending=True)
        # A run of the command line has no code location, and removes those that have none either.
        own = [run for run in page if run.tags.get(REPOSITORY_LABEL_TAG) == place]
        for run in own:
            remove_run(instance, run.run_id)
        removed += len(own)
        if not own:
            break
    return removed
