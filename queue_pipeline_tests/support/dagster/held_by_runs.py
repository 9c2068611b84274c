"""Runs of Dagster without a process, and what they hold in the database."""

import uuid

import dagster as dg
from dagster._core.code_pointer import ModuleCodePointer
from dagster._core.origin import JobPythonOrigin, RepositoryPythonOrigin
from dagster._core.remote_origin import RegisteredCodeLocationOrigin, RemoteJobOrigin, RemoteRepositoryOrigin

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.watch.run_upkeep import Deployment
from queue_pipeline.orchestration.watch.upkeep import LOOK_SECONDS
from queue_pipeline.transport import OutgoingMessage

HERE = "here"


class Clock:
    """Time that passes when a test says so."""

    seconds = 1_000.0

    def __call__(self):
        return self.seconds


def keeper(upkeep, clock, instance, queues):
    """A function that lets time pass, with a look every few seconds; nothing may fail."""

    def keep(seconds):
        while seconds > 0:
            clock.seconds += min(seconds, LOOK_SECONDS)
            seconds -= LOOK_SECONDS
            upkeep.look(Deployment(instance, queues, HERE), lambda: True)
        assert upkeep.troubles() == []
        return upkeep

    return keep


def add_run(instance, status, *, location=HERE, pipeline="orders"):
    """A run of a pipeline's job, as a code location launched it, or the command line if there is none."""
    job = dg.job(name=f"{pipeline}_pipeline")(lambda: None)
    slot = RemoteRepositoryOrigin(RegisteredCodeLocationOrigin(location), "__repository__") if location else None
    code = RepositoryPythonOrigin("python", ModuleCodePointer("queue_pipeline.definitions", "defs"))
    return instance.create_run_for_job(
        job,
        run_id=str(uuid.uuid4()),
        status=status,
        tags={names.PIPELINE_TAG: pipeline},
        remote_job_origin=RemoteJobOrigin(slot, job.name) if slot else None,
        job_code_origin=JobPythonOrigin(job.name, code) if slot else None,
    )


def hold(queues, run_or_owner, process=""):
    """A slot and a batch of two messages."""
    owner = run_or_owner if isinstance(run_or_owner, str) else names.owner(run_or_owner.run_id)
    queues.send("orders", [OutgoingMessage(b"", {}) for _ in range(2)])
    queues.slots.take(queues.resolve("orders"), owner, 1, 64, 300, process)
    queues.claim("orders", owner, 2)
    return owner


def holders(queues):
    """The owners of slots, and those of batches."""
    holders = {holder.owner for holder in queues.slots.list()}
    return holders, {claim.owner for claim in queues.claims.list()} - {None}


def status_of(instance, run):
    """What Dagster says of a run now."""
    return instance.get_run_by_id(run.run_id).status
