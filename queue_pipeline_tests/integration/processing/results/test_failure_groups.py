"""ServiceControl groups whatever failed by its type and by the place that refused it."""

import json

import pytest
from pydantic import BaseModel, field_validator

from queue_pipeline.client.callback_receiver import why_unmatched
from queue_pipeline.client.pending import Ending
from queue_pipeline.processing.batch.claimed_batch import parse_bodies
from queue_pipeline.processing.batch.transformer import Transformed
from queue_pipeline.processing.body.parse import body_parser
from queue_pipeline.transport import OutgoingMessage
from queue_pipeline.transport.failed.error_message import Failure, error_message
from queue_pipeline.transport.messages.message import ReceivedMessage
from queue_pipeline_tests.support.processing.plain_transformer import PlainTransformer
from queue_pipeline_tests.support.processing.recovering import declare, fill, run
from queue_pipeline_tests.support.service_control import import_error

HERE = __name__
GROUP = "Exception Type and Stack Trace"


class Order(BaseModel):
    """A body."""

    n: int

    @field_validator("n")
    @classmethod
    def check(cls, n: int) -> int:
        """Raise what is no refusal."""
        if n == 5:
            raise KeyError("no rate")
        return n


def price(messages):
    """A transform, as far as its name is concerned."""
    return messages


class Refusing(PlainTransformer):
    """Refuses by schema, or by the transform."""

    def __init__(self, schema=None):
        super().__init__()
        self.schema = schema

    def transform(self, batch, sending):
        if self.schema:
            return Transformed(failures=parse_bodies(body_parser(self.schema), batch.messages)[1])
        versions = batch.messages["row_version"].to_pylist()
        return Transformed(failures=dict.fromkeys(versions, Failure("MessageRefused", "no stock")))


def groups(transport):
    return [import_error(shown.raw_headers, shown.body).groups[GROUP] for shown in transport.show("error", 10)]


@pytest.mark.parametrize(
    ("schema", "body", "group"),
    [
        (Order, b'{"n":"x"}', f"MessageBodyUnreadable: {HERE}.Order()"),
        (Order, b"\xff", f"MessageBodyUnreadable: {HERE}.Order()"),
        (Order, b'{"n":5}', f"KeyError: {HERE}.Order.check()"),
        ("n INT", b'{"n":"x"}', "MessageBodyUnreadable: queue_pipeline.processing.body.parse.BodyParser.parse()"),
        (None, b"{}", f"MessageRefused: {HERE}.price()"),
    ],
)
def test_a_refused_message_is_grouped_by_what_refused_it(transport, schema, body, group):
    transport.send("orders", [OutgoingMessage(body, {}), OutgoingMessage(body, {})])
    ended, _ = run(transport, Refusing(schema), declare(transform=price))
    assert ended.failure is None
    assert groups(transport) == [group, group]
    (first, *_) = transport.show("error", 10)
    frames = import_error(first.raw_headers, first.body).frames
    assert frames[0].file is None or frames[0].file.endswith(".py")


def test_an_exception_is_grouped_by_its_place(transport):
    def explode(found):
        if found:
            raise ValueError("no stock")

    fill(transport, 2)
    run(transport, PlainTransformer(explode))
    place = f"{HERE}.test_an_exception_is_grouped_by_its_place.explode()"
    assert groups(transport) == [f"builtins.ValueError: {place}"] * 2


@pytest.mark.parametrize("ending", [None, *Ending])
def test_a_reply_without_a_waiting_request_is_grouped_too(ending):
    message = ReceivedMessage("id", 1, {"NServiceBus.MessageId": "m", "NServiceBus.CorrelationId": "c"}, b"")
    reason = why_unmatched(message, "web", ending)
    copy = error_message(message.headers, b"", reason, "web", "Web")
    failed = import_error(json.dumps(dict(copy.headers)), b"")
    assert failed.groups[GROUP] == f"{reason.error_type}: queue_pipeline.client.callback_receiver.why_unmatched()"
