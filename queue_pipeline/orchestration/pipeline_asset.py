"""A pipeline as a graph-backed asset: one op claims, the other processes until the queue is empty."""

import contextlib
import shlex
import threading
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any, TypeAlias

import dagster as dg

from queue_pipeline.errors import QueuePipelineError
from queue_pipeline.orchestration import metadata
from queue_pipeline.orchestration.checks import report_checks
from queue_pipeline.orchestration.names import PIPELINE_TAG, SLOTS_TAG, Names, owner
from queue_pipeline.orchestration.resources import SparkResource, transport_of
from queue_pipeline.orchestration.run_log import Minute, RunLog
from queue_pipeline.orchestration.run_process import end_soon
from queue_pipeline.processing.batch.executors import Executors
from queue_pipeline.processing.batch.transformer import SparkTransformer
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.processing.failures.judge import proof_of
from queue_pipeline.processing.results.exceptions import describe, in_a_line
from queue_pipeline.processing.run.attempted import Attempted
from queue_pipeline.processing.run.pipeline_run import FAILS_FOR_ALL, PipelineRun, RunEnd
from queue_pipeline.processing.run.recovery import Recovery
from queue_pipeline.processing.run.run_metrics import RunFigures
from queue_pipeline.processing.run.source_code import SourceCode
from queue_pipeline.processing.run.take import slots_of, take_batch
from queue_pipeline.processing.spark.attempt_sessions import AttemptSessions
from queue_pipeline.processing.spark.run_spark import RunSpark
from queue_pipeline.transport import Claim, QueueTransport, TransactionMode
from queue_pipeline.transport.operations.process_identity import this_process
from queue_pipeline.transport.texts import count_of

ONE_PROCESS = (dg.in_process_executor.name, "execute_in_process_executor")
"""Executors that execute all steps in the process of the run: that of the jobs, and that of `execute_in_process`."""
Outputs: TypeAlias = Iterator[dg.Output[None]]
GetAssetSpec: TypeAlias = Callable[[QueuePipeline], dg.AssetSpec]
Execute: TypeAlias = Callable[[dg.OpExecutionContext, QueuePipeline, Outputs], Outputs]
"""Wraps the processing of a run, which happens while its outputs are iterated."""


def pipeline_asset(
    pipeline: QueuePipeline,
    code: SourceCode | None,
    names: Names,
    get_asset_spec: GetAssetSpec | None = None,
    execute: Execute | None = None,
) -> dg.AssetsDefinition:
    """The asset `<name>` with its ops `dequeue_<name>` and `process_<name>`; a run of old code ends."""
    dequeue, process = _dequeue_op(pipeline, code, names), _process_op(pipeline, code, names, execute)

    @dg.graph_asset(
        key=names.pipeline_key(pipeline),
        ins={"queue": dg.AssetIn(key=names.queue_key(pipeline.input_queue), dagster_type=dg.Nothing)},
    )
    def graph(queue: Any) -> Any:
        return process(dequeue(queue))

    spec = get_asset_spec(pipeline) if get_asset_spec is not None else pipeline_spec(pipeline, names)
    # Jobs, checks and the sensor know the asset by its key, and the graph has its input.
    return graph.map_asset_specs(lambda made: spec.replace_attributes(key=made.key, deps=made.deps))


def pipeline_spec(pipeline: QueuePipeline, names: Names) -> dg.AssetSpec:
    """What Dagster shows of a pipeline."""
    return dg.AssetSpec(
        names.pipeline_key(pipeline),
        group_name=names.group,
        description=_description(pipeline),
        kinds={"pyspark", "sql"},
        owners=list(pipeline.owners),
        metadata=metadata.declaration(pipeline),
        tags={PIPELINE_TAG: names.pipeline_tag(pipeline)},
    )


def _dequeue_op(pipeline: QueuePipeline, code: SourceCode | None, names: Names) -> dg.OpDefinition:
    @dg.op(
        name=names.dequeue_op(pipeline),
        description=f"Claims the first batches of {pipeline.input_queue}; ends the run if there are none.",
        ins={"queue": dg.In(dg.Nothing)},
        out=dg.Out(list, is_required=False, description="claims: small values that any later step can go on with"),
        required_resource_keys={names.transport},
        tags={"kind": "sql"},
    )
    def dequeue(context: dg.OpExecutionContext) -> Iterator[dg.Output[list[Any]]]:
        database = _transport(context, names, pipeline)
        claims: list[Claim] = []
        with _clear_errors(pipeline):
            if (pause := database.pauses.list().get(pipeline.name)) is not None:
                context.log.info(
                    f"{pipeline.name} is paused by {pause.by}; resume: queue-pipeline resume {pipeline.name}"
                )
                return
            if code is not None and (module := code.change()) is not None:
                context.log.info(f"the code changed while this run started: {module}; the next run has the new one")
                return
            run = owner(context.run_id)
            held = slots_of(pipeline, database, run, _process(context))
            try:
                free = held.take(_slots(context, pipeline))
                if not free:
                    context.log.info(f"{held.refusal()}; this run has nothing to do")
                    return
                while len(claims) < free and (claim := take_batch(pipeline, database, run, free)):
                    claims.append(claim)
                # The next step asks for more if it finds more; until it starts, others may.
                held.keep(len(claims))
            except BaseException:
                # Also when the run is terminated here: without this the claims wait until their lease ends.
                database.claims.release_owner(run)
                held.release()
                raise
        if not claims:
            context.log.info(f"nothing to do: {pipeline.input_queue} is empty, or others took what there was")
            return
        messages = count_of(sum(claim.messages for claim in claims), "message")
        context.log.info(f"claimed {messages} in {count_of(len(claims), 'batch')}")
        yield dg.Output([asdict(claim) for claim in claims])

    return dequeue


def _process_op(
    pipeline: QueuePipeline, code: SourceCode | None, names: Names, execute: Execute | None
) -> dg.OpDefinition:
    def batches(context: dg.OpExecutionContext, claims: list[Any]) -> Outputs:
        database = _transport(context, names, pipeline)
        spark: SparkResource = getattr(context.resources, names.spark)
        figures, retry = RunFigures(), metadata.retry_all(database, pipeline)
        run_spark = RunSpark(lambda: spark.spark_session, spark.properties)
        sessions = AttemptSessions(run_spark.session, pipeline.batch_seconds)
        transformer = SparkTransformer(pipeline, sessions)
        executors = Executors(pipeline, database, sessions)
        proof = proof_of(code.fingerprint if code is not None else None, spark.properties)
        recovery = Recovery(pipeline, database, transformer, executors, proof, run_spark)

        def on_attempt(attempted: Attempted) -> None:
            figures.add(attempted)
            log.add(attempted)

        def on_interrupt() -> None:
            end_soon()
            # Beside: a Spark that hangs does not answer, and what this run holds is to be released all the same.
            for interrupt in (spark.interrupt, sessions.interrupt):
                threading.Thread(target=interrupt, daemon=True).start()

        def code_change() -> str | None:
            if code is None:
                return None
            if (module := code.change()) is not None:
                return module
            # Of code that may be old, one batch is done: a file that every start writes must not stop all work.
            return f"{code.uncertain}, while this run loaded it" if code.uncertain and figures.batches else None

        def report(minute: Minute) -> None:
            values = metadata.of_run(minute.figures, retry)
            context.log_event(dg.AssetObservation(names.pipeline_key(pipeline), minute.sentence, metadata=values))

        with _clear_errors(pipeline), contextlib.closing(run_spark), RunLog(pipeline, context.log.log, report) as log:
            figures.start()
            held = _held(context, pipeline, database, [Claim(**claim) for claim in claims])
            drain = PipelineRun(
                pipeline,
                database,
                owner(context.run_id),
                recovery,
                slots=_slots(context, pipeline),
                on_attempt=on_attempt,
                on_interrupt=on_interrupt,
                code_change=code_change,
            )
            ended = drain.run(held)
            messages = count_of(figures.messages, "message")
            done = f"done: {ended.reason}; {messages} in {count_of(figures.batches, 'batch')}"
            log.close(done if ended.failure is None else None)
            metadata.observe_queues(context, names, database, [pipeline])
            report_checks(context, names, database, pipeline, figures.expired)
        values = metadata.of_run(log.figures, retry, figures, ended.reason)
        if ended.failure is not None:
            context.log_event(dg.AssetObservation(names.pipeline_key(pipeline), metadata=values))
            raise _failure(pipeline, ended, ended.failure) from ended.failure
        if figures.batches:
            yield dg.Output(None, metadata=values)

    @dg.op(
        name=names.process_op(pipeline),
        description=_description(pipeline),
        out=dg.Out(dg.Nothing, is_required=False),
        required_resource_keys={names.transport, names.spark},
        tags={"kind": "pyspark"},
    )
    def process(context: dg.OpExecutionContext, claims: list[Any]) -> Outputs:
        outputs = batches(context, claims)
        yield from outputs if execute is None else execute(context, pipeline, outputs)

    return process


def _held(
    context: dg.OpExecutionContext, pipeline: QueuePipeline, transport: QueueTransport, claims: list[Claim]
) -> list[Claim]:
    """The claims that are this run's. After "Re-execute from failure" they are taken over from the run that failed;
    one that another run took or completed meanwhile is left alone.
    """
    run, held = owner(context.run_id), []
    for claim in claims:
        mine = claim if claim.owner == run else transport.claims.adopt(claim, run, pipeline.lease_seconds)
        if mine is None:
            context.log.info(f"claim {claim.claim_id} was processed or taken over by another run since")
        else:
            held.append(mine)
    return held


def _process(context: dg.OpExecutionContext) -> str:
    """The process of the whole run, if it has only one: other executors start one for each step."""
    return this_process() if context.job_def.executor_def.name in ONE_PROCESS else ""


def _slots(context: dg.OpExecutionContext, pipeline: QueuePipeline) -> int:
    """How many batches this run may have in work: what the peek loop gave it, else what the pipeline declares."""
    given = context.run.tags.get(SLOTS_TAG, "")
    return min(int(given), pipeline.max_concurrency) if given.isdigit() and int(given) > 0 else pipeline.slots


def _transport(context: dg.OpExecutionContext, names: Names, pipeline: QueuePipeline) -> QueueTransport:
    return transport_of(context, names).transport(endpoint=pipeline.input_queue, error_queue=pipeline.error_queue)


def _failure(pipeline: QueuePipeline, ended: RunEnd, error: BaseException) -> dg.Failure:
    claim = ended.failed_claim
    reason = f"{error}" if isinstance(error, QueuePipelineError) else in_a_line(describe(error))
    fate = "its messages are released and will be processed again"
    if pipeline.transaction_mode is TransactionMode.UNRELIABLE:
        fate = "its messages are gone, because transaction_mode is unreliable"
    if ended.reason == FAILS_FOR_ALL:
        fate = f"no message is to blame, and those of the batch are in {pipeline.error_queue}"
    return dg.Failure(
        description=f"a batch of pipeline {pipeline.name} failed; {fate}. {reason}",
        metadata={
            "queue": claim.queue if claim else pipeline.input_queue,
            "claim": claim.claim_id if claim else "",
            "generation": claim.generation if claim else 0,
            "messages": claim.messages if claim else 0,
        },
        # The queue is the retry: the next run takes the same messages.
        allow_retries=False,
    )


@contextlib.contextmanager
def _clear_errors(pipeline: QueuePipeline) -> Iterator[None]:
    """Make an error that a person can act on the description of the run, without a traceback before it."""
    try:
        yield
    except QueuePipelineError as error:
        raise dg.Failure(description=f"pipeline {pipeline.name}: {error}", allow_retries=False) from error


def _description(pipeline: QueuePipeline) -> str:
    what = pipeline.description or (pipeline.transform.__doc__ or "").strip() or "Processes messages with PySpark."
    outputs = [output.queue for output in pipeline.output_queues] + [event.name for event in pipeline.publishes]
    to = ", ".join(outputs) or "no queue"
    return (
        f"{what}\n\n"
        f"**From** {pipeline.input_queue} **to** {to}; messages that fail go to {pipeline.failed_in}. "
        f"Transaction mode: {pipeline.transaction_mode.value}.\n\n"
        "**Where to look:** *Plots* are updated every minute while a run works, the most important first; *Checks* "
        "say what failed and how to retry it. In a terminal with `QUEUE_PIPELINE_DATABASE` set as for this project:\n\n"
        "```\n"
        f"queue-pipeline status {shlex.quote(pipeline.input_queue)} --watch\n"
        f"queue-pipeline errors list --from {shlex.quote(pipeline.input_queue)}\n"
        "```"
    )
