"""Tables as queues: the NServiceBus SQL transport's tables on SQL Server, PostgreSQL and SQLite.

This layer knows databases only; nothing in it imports Dagster or Spark.
"""

from queue_pipeline.transport.addresses.address import QueueAddress
from queue_pipeline.transport.addresses.queues import QueueTable
from queue_pipeline.transport.claims.claim import Claim, RowsRead
from queue_pipeline.transport.claims.completion import Completion
from queue_pipeline.transport.messages.event import Event
from queue_pipeline.transport.messages.message import (
    Operation,
    OutgoingMessage,
    ReceivedMessage,
    TransactionMode,
    new_message,
)
from queue_pipeline.transport.messages.message_columns import MessageColumns
from queue_pipeline.transport.operations.install import InstallOptions
from queue_pipeline.transport.operations.user_table_sql import TableRows
from queue_pipeline.transport.transport import QueueTransport

__all__ = [
    "Claim",
    "Completion",
    "Event",
    "InstallOptions",
    "MessageColumns",
    "Operation",
    "OutgoingMessage",
    "QueueAddress",
    "QueueTable",
    "QueueTransport",
    "ReceivedMessage",
    "RowsRead",
    "TableRows",
    "TransactionMode",
    "new_message",
]
