"""Messages in error queues, for the tests of what can be done with them."""

from datetime import UTC, datetime

from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.failed.failed_message import Selection
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline.transport.messages.message import new_row_ids

ALL = Selection(everything=True)
NOON = datetime(2026, 3, 4, 12, tzinfo=UTC)


def failure(transport, queue="orders", body=b"{}", kind="Shop.NoStockError", **headers):
    """A message as it lies in an error queue after it failed in a queue."""
    sent = {**wire.standard_headers(message_type="Shop.OrderPlaced, Shop, Version=1.0.0.0"), **headers}
    return error_message(sent, body, Failure(kind, "nothing left"), transport.resolve(queue).canonical, "Shop", NOON)


def fail(transport, *messages):
    """Put messages into the error queue, each as a message of its own."""
    for message in messages:
        transport.send("error", message)


def raw(transport, text, body=b"raw", queue="error"):
    """Put a row into a queue whose header text is exactly this; returns its id."""
    (row_id,) = new_row_ids(1)
    table = transport.resolve(queue)
    with transport.database.transaction() as transaction:
        command = transport.database.shapes.statement(transaction, "nservicebus/queue.dead_letter", table)
        transaction.execute(command, id=row_id, headers=text, body_is_null=0, body=body)
    return row_id


def waiting(transport, queue="orders"):
    return transport.show(queue, 10_000)


def bodies(transport, queue="orders"):
    return [message.body for message in waiting(transport, queue)]
