"""What a declaration refuses, by the name of the pipeline and of the field."""

import functools
import re

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.declaration.outcomes import publish
from queue_pipeline.processing.declaration.pipeline import Output, QueuePipeline
from queue_pipeline.transport import TransactionMode


def passing(messages):
    return messages


def declare(**options):
    return QueuePipeline(**{"name": "orders", "input_queue": "orders", "transform": passing, **options})


def test_a_queue_and_a_function_are_a_pipeline():
    pipeline = declare()
    assert pipeline.queues == ("orders", "error")
    assert pipeline.transaction_mode is TransactionMode.SENDS_ATOMIC_WITH_RECEIVE
    assert (pipeline.peek_delay, pipeline.linger_seconds, pipeline.concurrency_policy) == (1.0, 10.0, "pending")
    assert (pipeline.slots, pipeline.endpoint_name) == (2, "orders")


def test_queues_are_named_once_each_the_input_first():
    pipeline = declare(output_queues=["b", Output(queue="a"), "error"], audit_queue="audit")
    assert pipeline.queues == ("orders", "b", "a", "error", "audit")


def test_a_run_has_as_many_batches_in_work_as_are_allowed_in_all_unless_it_says_otherwise():
    assert declare(max_concurrency=6).slots == 6
    assert declare(max_concurrency=6, batches_per_run=2).slots == 2


@pytest.mark.parametrize(
    ("field", "value", "says"),
    [
        ("name", "Orders", "string_pattern|pattern"),
        ("name", "1st", "pattern"),
        ("name", "a-b", "pattern"),
        ("name", "a" * 61, "60 characters"),
        ("input_queue", "", "at least 1 character"),
        ("error_queue", "", "at least 1 character"),
        ("audit_queue", "", "at least 1 character"),
        ("endpoint", "", "at least 1 character"),
        ("peek_delay", 0.05, "greater than or equal to 0.1"),
        ("peek_delay", "soon", "valid number"),
        ("batch_messages", 0, "greater than or equal to 1"),
        ("batch_messages", 1_000_001, "less than or equal to 1000000"),
        ("batch_bytes", 0, "greater than or equal to 1"),
        ("max_concurrency", 0, "greater than or equal to 1"),
        ("max_concurrency", 65, "less than or equal to 64"),
        ("batches_per_run", 3, "more than max_concurrency"),
        ("transaction_mode", "exactly", "transaction_scope"),
        ("concurrency_policy", "greedy", "'pending', 'ramp_up' or 'fixed'"),
        ("linger_seconds", -1, "greater than or equal to 0"),
        ("max_run_seconds", 0, "greater than 0"),
        ("lease_seconds", 1, "greater than or equal to 5"),
        ("output_queues", ["a", "b", "a"], "a is named more than once"),
        ("output_queues", [{"queue": "a", "ttl": 5}], "Extra inputs are not permitted"),
        ("output_queues", [{"queue": "a", "time_to_live": 0}], "greater than 0"),
        ("output_queues", [5], "valid dictionary or instance of Output"),
        ("transform", "price", "callable"),
        ("transform", lambda: None, "function of one argument"),
        ("transform", lambda messages, more: None, "function of one argument"),
        ("body_schema", 5, "body schema 5 is not usable"),
        ("body_schema", "id strin", "strin"),
        ("peek_dealy", 1, "Extra inputs are not permitted"),
    ],
)
def test_a_bad_field_is_refused_by_name(field, value, says):
    with pytest.raises(ConfigurationError) as caught:
        declare(**{field: value})
    reported = str(caught.value)
    name = repr(value) if field == "name" else "'orders'"
    assert reported.startswith(f"pipeline {name} cannot be loaded: ")
    assert field in reported
    assert any(words in reported for words in says.split("|"))


@pytest.mark.parametrize("field", ["name", "input_queue", "transform"])
def test_a_field_that_is_missing_is_named(field):
    values = {"name": "orders", "input_queue": "orders", "transform": passing}
    del values[field]
    with pytest.raises(ConfigurationError, match=f"{field}: Field required"):
        QueuePipeline(**values)


def test_all_problems_are_reported_at_once():
    with pytest.raises(ConfigurationError, match=r"peek_delay: .*; batch_messages: |batch_messages: .*; peek_delay: "):
        declare(peek_delay=0, batch_messages=0)


def test_an_empty_output_queue_is_refused_in_one_line():
    with pytest.raises(ConfigurationError) as caught:
        declare(output_queues=["billing", ""])
    assert "output_queues.1" in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    "queues",
    [{"error_queue": "orders"}, {"audit_queue": "orders"}, {"audit_queue": "error"}],
)
def test_input_error_and_audit_queue_are_different_queues(queues):
    with pytest.raises(ConfigurationError, match="input_queue, error_queue and audit_queue must be different queues"):
        declare(**queues)


def test_a_long_peek_delay_causes_a_warning_and_a_usual_one_does_not():
    with pytest.warns(UserWarning, match=r"a peek delay of 11\.0 s"):
        assert declare(peek_delay=11).peek_delay == 11
    assert declare(peek_delay=10).peek_delay == 10


def test_a_declaration_does_not_change():
    with pytest.raises(Exception, match="frozen"):
        declare().name = "other"


@pytest.mark.parametrize("mode", [mode.value for mode in TransactionMode])
def test_a_mode_is_named_as_in_the_documentation(mode):
    assert declare(transaction_mode=mode).transaction_mode.value == mode


class Callable:
    def __call__(self, messages):
        return messages


def test_a_callable_object_and_a_partial_function_are_transforms_too():
    assert declare(transform=Callable()).transform is not None
    assert declare(transform=functools.partial(passing)).transform is not None


def test_an_event_that_is_declared_twice_or_too_long_is_refused():
    with pytest.raises(ConfigurationError, match=r"publishes: Shop\.A is named more than once"):
        declare(publishes=["Shop.A", "Shop.A, Shop"])
    with pytest.raises(ConfigurationError, match=r"pipeline 'orders' cannot be loaded: publishes.*201 characters"):
        declare(publishes=["x" * 201])
    with pytest.raises(ConfigurationError, match=r"subscribes_to.*201 characters"):
        declare(subscribes_to=["x" * 201])


def test_what_is_subscribed_to_is_known_by_full_names():
    assert declare(subscribes_to=["Shop.A, Shop", "Shop.B", "Shop.A"]).subscribes_to == ("Shop.A", "Shop.B")


def test_an_event_cannot_be_delayed():
    with pytest.raises(ConfigurationError, match=r"publish of 'Shop\.A': an event cannot be delayed; send a delayed"):
        publish("Shop.A", body="x", delay=5)


def test_an_event_needs_one_body():
    with pytest.raises(ConfigurationError, match=r"publish of 'Shop\.A': give either json= .* or body="):
        publish("Shop.A")


@pytest.mark.parametrize(
    ("field", "value", "reported"),
    [
        ("error_queue", "sql://db/Errors", "error_queue: sql://db/Errors is an NGinn queue"),
        ("audit_queue", "sql://db/Audit", "audit_queue: sql://db/Audit is an NGinn queue"),
        ("subscribes_to", ["Shop.Sold"], "queue-pipeline nginn subscribe"),
    ],
)
def test_options_that_an_nginn_queue_cannot_have_are_refused(field, value, reported):
    with pytest.raises(ConfigurationError, match=re.escape(reported)):
        declare(input_queue="sql://db/Orders", **{field: value})


@pytest.mark.parametrize(
    ("queue", "endpoint"),
    [
        ("orders", "orders"),
        ('"Pulse.instance"', "Pulse.instance"),
        ('"sales"."Pulse.instance"', "Pulse.instance"),
        ('"say ""hi"""', 'say "hi"'),
        ("Pulse.instance", "Pulse.instance"),
        ("Pulse.instance@[dbo]@[shop]", "Pulse.instance"),
        ("sql://db/Orders", "sql://db/Orders"),
    ],
)
def test_a_pipeline_is_called_on_the_wire_as_an_endpoint_with_that_queue(queue, endpoint):
    assert QueuePipeline(name="p", input_queue=queue, transform=lambda messages: messages).endpoint_name == endpoint
