"""Asset checks: the index audit of every queue, with the statement that fixes what is missing."""

from collections.abc import Sequence

import dagster as dg

from queue_pipeline.orchestration import names
from queue_pipeline.orchestration.transport_resource import QueueTransportResource
from queue_pipeline.processing.declaration.pipeline import QueuePipeline
from queue_pipeline.transport.errors import QueueNotFoundError


def index_checks(pipelines: Sequence[QueuePipeline]) -> list[dg.AssetChecksDefinition]:
    """One check a queue."""
    queues = dict.fromkeys(queue for pipeline in pipelines for queue in pipeline.queues)
    return [_index_check(queue) for queue in queues]


def _index_check(queue: str) -> dg.AssetChecksDefinition:
    @dg.asset_check(
        asset=names.queue_key(queue),
        name="indexes",
        description=f"Whether {queue} has the indexes and columns that it needs; findings carry the SQL that fixes it.",
    )
    def indexes(transport: QueueTransportResource) -> dg.AssetCheckResult:
        try:
            findings = transport.transport().audit_indexes(queue)
        except QueueNotFoundError as error:
            return dg.AssetCheckResult(passed=False, severity=dg.AssetCheckSeverity.WARN, description=str(error))
        if not findings:
            return dg.AssetCheckResult(passed=True, metadata={"findings": 0})
        rows = [
            dg.TableRecord({"finding": one.code, "what": one.message, "cost": one.cost, "fix": one.fix})
            for one in findings
        ]
        return dg.AssetCheckResult(
            passed=False,
            severity=dg.AssetCheckSeverity.WARN,
            description=findings[0].message,
            metadata={
                "findings": len(findings),
                "fix": dg.MetadataValue.md(
                    "\n".join(f"```sql\n-- {one.section}\n{one.fix}\n```" for one in findings if one.fix)
                ),
                "details": dg.MetadataValue.table(rows),
            },
        )

    return indexes
