"""What the tests of holders share."""

from queue_pipeline.transport.addresses.queues import SLOTS_TABLE

LEASE = 300.0


def table_of(transport):
    return transport.book.own(SLOTS_TABLE).qualified
