"""Failed messages: jobs by which an operator sends them back to where they failed, or discards them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import dagster as dg
from pydantic import Field

from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.errors import QueueNotFoundError
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.returns import NotReturned, Retried
from queue_pipeline.transport.operations.slots import SlotHolder

RETRY_JOB = "retry_errors"
DISCARD_JOB = "discard_errors"
RETRY_OP = "return_failed_messages"
DISCARD_OP = "discard_failed_messages"
FAILED_MESSAGE_NAMES = (RETRY_OP, DISCARD_OP, RETRY_JOB, DISCARD_JOB)
"""Ops and jobs, whose names no pipeline can have."""
T = TypeVar("T")
Rows: TypeAlias = Sequence[Mapping[str, str | int]]
MOST_SHOWN = 100
LONGEST_REASON = 300


class FailedMessagesConfig(dg.Config):
    """Which failed messages are meant: those that meet all that is given, or all of them; never none by mistake."""

    error_queue: str | None = Field(
        None, description="By default those of the pipelines. An NGinn queue keeps its failed messages: name that."
    )
    ids: list[str] = Field([], description="Message ids, for example ['6f1c0f0e-0001'].")
    message_type: str | None = Field(None, description="For example Shop.OrderPlaced.")
    exception: str | None = Field(None, description="For example CountryNotServed; the last part of a name will do.")
    failed_queue: str | None = Field(None, description="Those that failed in this queue, for example orders.")
    all: bool = Field(False, description="All failed messages; instead of a choice.")

    def selection(self) -> Selection:
        """The choice, which refuses to be none."""
        return Selection(
            ids=tuple(self.ids),
            message_type=self.message_type,
            exception=self.exception,
            failed_queue=self.failed_queue,
            everything=self.all,
        )


class RetryConfig(FailedMessagesConfig):
    """The same, and where the messages go."""

    to: str | None = Field(None, description="By default each goes to the queue in which it failed.")


def failed_message_jobs(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.JobDefinition]:
    """The jobs over the error queues of all pipelines."""
    error_queues = list(dict.fromkeys(pipeline.error_queue for pipeline in pipelines))

    @dg.op(
        name=names.named(RETRY_OP),
        required_resource_keys={names.transport},
        description="Sends chosen messages of error queues back to the queues in which they failed.",
    )
    def retry(context: dg.OpExecutionContext, config: RetryConfig) -> None:
        database, selection = transport_of(context, names).transport(), config.selection()

        def retry_one(queue: QueueTable) -> Retried:
            failures, log = database.layouts.of(queue).failures, _log(context, queue, "dealt with")
            return failures.retry(queue, selection, config.to, on_progress=log)

        results = _on_each(context, database, _named(config, error_queues), retry_one).values()
        counts = sum((result.queues for result in results), Counter[str]())
        stayed = [each for result in results for each in result.named][:MOST_SHOWN]
        for queue, number in counts.items():
            context.log.info(f"returned {number:,} messages to {queue}")
        takers = database.slots.at_work_on(counts)
        for taker in takers:
            context.log.info(f"{taker.owner} is at work on {taker.queue}; may take them: {taker.may_take_more}")
        for each in stayed:
            context.log.warning(f"message {each.message_id} stays where it is: {each.reason}")
        context.add_output_metadata(
            {
                "returned": counts.total(),
                "stayed": sum(result.skipped for result in results),
                "held": sum(result.held for result in results),
                **_table("queues", [{"queue": queue, "returned": number} for queue, number in counts.items()]),
                **_table("not_returned", [_record(each) for each in stayed]),
                **_table("receivers", [_taker(each) for each in takers]),
            }
        )

    @dg.op(
        name=names.named(DISCARD_OP),
        required_resource_keys={names.transport},
        description="Deletes chosen messages of error queues for good.",
    )
    def discard(context: dg.OpExecutionContext, config: FailedMessagesConfig) -> None:
        database, selection = transport_of(context, names).transport(), config.selection()

        def discard_one(queue: QueueTable) -> int:
            failures, log = database.layouts.of(queue).failures, _log(context, queue, "discarded")
            return failures.discard(queue, selection, on_progress=log)

        counts = _on_each(context, database, _named(config, error_queues), discard_one)
        rows: Rows = [{"queue": queue, "discarded": number} for queue, number in counts.items()]
        context.add_output_metadata({"discarded": sum(counts.values()), **_table("queues", rows)})

    @dg.job(
        name=names.named(RETRY_JOB),
        executor_def=dg.in_process_executor,
        description="Returns failed messages to where they failed; the launchpad chooses." + _example(names, RETRY_OP),
    )
    def retry_job() -> None:
        retry()

    @dg.job(
        name=names.named(DISCARD_JOB),
        executor_def=dg.in_process_executor,
        description="Deletes failed messages for good; the launchpad chooses." + _example(names, DISCARD_OP),
    )
    def discard_job() -> None:
        discard()

    return [retry_job, discard_job]


def _example(names: Names, op: str) -> str:
    """What a person pastes into the launchpad, and changes."""
    to = "      # to: orders                         # elsewhere than to where they failed\n" if op == RETRY_OP else ""
    return (
        "\n\n```yaml\n"
        f"ops:\n  {names.named(op)}:\n    config:\n"
        "      exception: CountryNotServed          # all that failed of this, or one of the following\n"
        "      # ids: [6f1c0f0e-0001]\n"
        "      # message_type: Shop.OrderPlaced\n"
        "      # failed_queue: orders               # those that failed in this queue\n"
        f"      # all: true\n{to}```"
    )


def _on_each(
    context: dg.OpExecutionContext,
    transport: QueueTransport,
    queues: str | Sequence[str],
    work: Callable[[QueueTable], T],
) -> dict[str, T]:
    """Do it for one error queue, which has to be there, or for several, of which some may not be installed yet."""
    if isinstance(queues, str):
        table = transport.resolve(queues)
        return {table.canonical: work(table)}
    done: dict[str, T] = {}
    # Two pipelines may write the same address in two ways.
    for table in dict.fromkeys(transport.resolve(queue) for queue in queues):
        try:
            done[table.canonical] = work(table)
        except QueueNotFoundError as error:
            if error.queue != table.canonical:
                raise
            context.log.warning(str(error))
    return done


def _named(config: FailedMessagesConfig, error_queues: Sequence[str]) -> str | Sequence[str]:
    return error_queues if config.error_queue is None else config.error_queue


def _log(context: dg.OpExecutionContext, queue: QueueTable, verb: str) -> Callable[[int], None]:
    return lambda done: context.log.info(f"{verb} {done:,} messages of {queue}")


def _record(stayed: NotReturned) -> dict[str, str | int]:
    reason = stayed.reason[:LONGEST_REASON]
    return {"id": stayed.message_id, "failed_queue": stayed.failed_queue or "", "reason": reason}


def _taker(receiver: SlotHolder) -> dict[str, str | int]:
    since = round(receiver.since_seconds)
    return {
        "owner": receiver.owner,
        "queue": receiver.queue,
        "since_s": since,
        "may_take_them": receiver.may_take_more,
    }


def _table(name: str, rows: Rows) -> dict[str, dg.TableMetadataValue]:
    """A table under a name, or nothing: Dagster has no table without rows."""
    return {name: dg.MetadataValue.table([dg.TableRecord(row) for row in rows])} if rows else {}
