"""Failed messages: jobs by which an operator sends them back to where they failed, or discards them."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias, TypeVar

import dagster as dg
from pydantic import Field

from queue_pipeline.errors import QueueNotFoundError
from queue_pipeline.orchestration.names import Names
from queue_pipeline.orchestration.op_job import op_job
from queue_pipeline.orchestration.resources import transport_of
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.failed.returns import Retried
from queue_pipeline.transport.texts import count_of

T = TypeVar("T")
Rows: TypeAlias = Sequence[Mapping[str, str | int]]
MOST_SHOWN = 100
LONGEST_REASON = 300


class FailedMessagesConfig(dg.Config):
    """Which failed messages are meant: those that match every given field, or all; an empty choice is refused."""

    all: bool = Field(False, description="true: all failed messages; then choose by no other field.")
    ids: list[str] = Field([], description="Message ids, for example [6f1c0f0e-0001, 6f1c0f0e-0002].")
    exception: str = Field("", description="For example CountryNotServed; the last part of a name is enough.")
    message_type: str = Field("", description="For example Shop.OrderPlaced.")
    failed_queue: str = Field("", description="The queue in which they failed, for example orders.")
    error_queue: str = Field(
        "", description="Empty: those of the pipelines. An NGinn queue keeps its failed messages: name that queue."
    )

    def selection(self) -> Selection:
        """The choice; an error if nothing is chosen."""
        return Selection(
            ids=tuple(self.ids),
            message_type=self.message_type or None,
            exception=self.exception or None,
            failed_queue=self.failed_queue or None,
            everything=self.all,
        )


class RetryConfig(FailedMessagesConfig):
    """The same, and where the messages go."""

    to: str = Field("", description="Empty: each goes to the queue in which it failed.")


def failed_message_jobs(pipelines: Sequence[QueuePipeline], names: Names) -> list[dg.JobDefinition]:
    """The jobs over the error queues of all pipelines."""
    error_queues = list(dict.fromkeys(pipeline.error_queue for pipeline in pipelines))

    def on_each(
        context: dg.OpExecutionContext, given: str, verb: str, work: Callable[[QueueTable, Callable[[int], None]], T]
    ) -> dict[str, T]:
        """Do it for the given error queue, which has to be there, or for those of all pipelines that are installed."""
        transport = transport_of(context, names).transport()
        done: dict[str, T] = {}
        # Two pipelines may write the same address in two ways.
        for table in dict.fromkeys(transport.resolve(queue) for queue in ([given] if given else error_queues)):

            def on_progress(count: int, queue: QueueTable = table) -> None:
                context.log.info(f"{verb} {count_of(count, 'message')} of {queue}")

            try:
                done[table.canonical] = work(table, on_progress)
            except QueueNotFoundError as error:
                if given or error.queue != table.canonical:
                    raise
                context.log.warning(str(error))
        return done

    @dg.op(
        name=names.named("return_failed_messages"),
        required_resource_keys={names.transport},
        description="Sends chosen messages of error queues back to the queues in which they failed.",
    )
    def retry(context: dg.OpExecutionContext, config: RetryConfig) -> None:
        database, selection = transport_of(context, names).transport(), config.selection()

        def retry_one(queue: QueueTable, on_progress: Callable[[int], None]) -> Retried:
            failures = database.layouts.of(queue).failures
            return failures.retry(queue, selection, config.to or None, on_progress=on_progress)

        results = on_each(context, config.error_queue, "handled", retry_one).values()
        counts = sum((result.queues for result in results), Counter[str]())
        stayed = [each for result in results for each in result.named][:MOST_SHOWN]
        for queue, number in counts.items():
            context.log.info(f"returned {count_of(number, 'message')} to {queue}")
        takers = database.slots.at_work_on(counts)
        for taker in takers:
            context.log.info(f"{taker.owner} is at work on {taker.queue}; may take them: {taker.may_take_more}")
        for each in stayed:
            context.log.warning(f"message {each.message_id} stays where it is: {each.reason}")
        not_returned: Rows = [
            {"id": one.message_id, "failed_queue": one.failed_queue or "", "reason": one.reason[:LONGEST_REASON]}
            for one in stayed
        ]
        receivers: Rows = [
            {
                "owner": one.owner,
                "queue": one.queue,
                "since_s": round(one.since_seconds),
                "may_take_them": one.may_take_more,
            }
            for one in takers
        ]
        context.add_output_metadata(
            {
                "returned": counts.total(),
                "stayed": sum(result.skipped for result in results),
                "held": sum(result.held for result in results),
                **_table("queues", [{"queue": queue, "returned": number} for queue, number in counts.items()]),
                **_table("not_returned", not_returned),
                **_table("receivers", receivers),
            }
        )

    @dg.op(
        name=names.named("discard_failed_messages"),
        required_resource_keys={names.transport},
        description="Deletes chosen messages of error queues for good.",
    )
    def discard(context: dg.OpExecutionContext, config: FailedMessagesConfig) -> None:
        database, selection = transport_of(context, names).transport(), config.selection()

        def discard_one(queue: QueueTable, on_progress: Callable[[int], None]) -> int:
            return database.layouts.of(queue).failures.discard(queue, selection, on_progress=on_progress)

        counts = on_each(context, config.error_queue, "discarded", discard_one)
        rows: Rows = [{"queue": queue, "discarded": number} for queue, number in counts.items()]
        context.add_output_metadata({"discarded": sum(counts.values()), **_table("queues", rows)})

    retries = "Returns failed messages to where they failed." + _example(retry, RetryConfig)
    discards = "Deletes failed messages for good." + _example(discard, FailedMessagesConfig)
    return [
        op_job(retry, names, "retry_errors", retries, RetryConfig),
        op_job(discard, names, "discard_errors", discards, FailedMessagesConfig),
    ]


def _example(op: dg.OpDefinition, config: type[FailedMessagesConfig]) -> str:
    """How the launchpad is filled in. What it opens with can have no comments: Dagster makes it of values."""
    fields = "".join(f"      # {name}: {field.description}\n" for name, field in config.model_fields.items())
    return (
        " The launchpad opens with all fields empty; fill in what the messages have in common, and launch:\n\n"
        f"```yaml\nops:\n  {op.name}:\n    config:\n      exception: CountryNotServed\n{fields}```"
    )


def _table(name: str, rows: Rows) -> dict[str, dg.TableMetadataValue]:
    """A table under a name, or nothing: Dagster has no table without rows."""
    return {name: dg.MetadataValue.table([dg.TableRecord(row) for row in rows])} if rows else {}
