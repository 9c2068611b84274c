"""What every key of metadata means, for asset pages and docs/metadata.md; each is as the UI shows it.

The UI sorts plots by name. Keys are named so that what matters comes first, and end with their unit where the words
before do not name it: `_s` is seconds.
"""

from __future__ import annotations

from collections.abc import Mapping

RUN_REPORT: Mapping[str, str] = {
    "handled_messages_per_s": "throughput: messages completed per second, from the first batch to the last",
    "latency_p50_s": "half of the messages took at most this long, from the sender's clock to completion",
    "latency_p95_s": "95 of 100 messages took at most this long",
    "latency_max_s": "the longest time that a message took",
    "messages_in": "messages taken from the input queue and completed",
    "messages_out": "messages sent: results, replies, events and audit copies",
    "messages_to_error_queue": "messages that failed for good; of an NGinn queue: marked as failed in their queue",
    "messages_to_retry_later": "messages that failed and are tried again after a delay",
    "messages_unread_expired": "messages dropped because they expired before they were read",
    "messages_without_outcome": "messages for which the transform returned nothing; they are done",
    "failed_messages": "table of the first messages that failed: id, type, cause, time",
    "retry_all": "the command that returns the failed messages to where they failed, once the cause is fixed",
    "slowest_messages": "table of the messages with the longest latency",
}
"""Of a pipeline's asset: since the run's report before; the last one of a run is its materialization."""

RUN_SUMS: Mapping[str, str] = {
    "run_ended_because": "why the run took no further batch",
    "run_messages_in": "messages taken and completed by the whole run",
    "run_messages_out": "messages sent by the whole run",
    "run_messages_to_error_queue": "messages that failed for good in the whole run",
    "run_batches": "batches that the run completed",
    "run_batches_by_executors": "those that Spark's executors read and staged; all others were read by the run itself",
    "run_highest_attempt": "the highest attempt number of a batch, starting at 1",
    "run_failed_attempts": "attempts at a batch that failed; their messages were tried again or failed",
    "run_bytes_in": "bytes of the bodies and headers taken",
    "run_table_rows": "rows written to tables of your own",
    "run_busy_s": "from the first batch taken to the last one completed",
    "run_read_s": "time spent reading and parsing, added up over batches",
    "run_transform_s": "time spent in Spark, added up over batches",
    "run_complete_s": "time spent in the transactions that send and delete, added up over batches",
    "spark_parts_missing": "private parts of PySpark that the installed version lacks; only if there are any",
    "spark_parts_lost": "table of these parts, and what is lost without each",
}
"""Of a pipeline's asset, at the end of a run: the whole run."""

QUEUE: Mapping[str, str] = {
    "age_of_oldest_s": "how long the oldest waiting message has waited, by its sender's clock",
    "depth_messages": "messages that wait",
    "due_later_messages": "delayed messages, not due yet",
    "due_next_s": "seconds until the next delayed message is due; negative: overdue",
    "error_queue_messages": "of input queues: messages in the error queue of the pipeline",
    "expired_messages": "messages that expired and were not deleted yet",
    "in_work_batches": "batches claimed by runs or released by them",
    "in_work_batches_abandoned": "those of them that no process holds; the next run takes them over",
    "in_work_messages": "messages in these batches",
    "latency_s": "of NGinn queues: average time from due to processed, over five minutes",
    "processed_messages": "of NGinn queues: processed messages that are still kept",
}
"""Of a queue's asset, when it is observed."""

CHECKS: Mapping[str, str] = {
    "age_limit_s": "what the pipeline declares as `oldest_message_seconds`",
    "last_error": "the error of the last attempt, while all attempts fail",
    "expired_messages_dropped_by_run": "messages that this run dropped because they had expired",
}
"""Of checks, beside keys of runs and queues."""
