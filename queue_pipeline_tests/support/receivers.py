"""What the tests of receivers share."""

from queue_pipeline.transport.queues import RECEIVERS_TABLE

LEASE = 300.0


def table_of(transport):
    return transport.book.own(RECEIVERS_TABLE).qualified
