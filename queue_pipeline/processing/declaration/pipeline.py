"""`QueuePipeline`: what a person declares, checked when it is declared, from which everything else is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError, field_validator, model_validator

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.processing.declaration.recoverability import NO_RETRIES, Recoverability
from queue_pipeline.processing.spark.internals.patches import allow_early_functions
from queue_pipeline.transport.addresses.address import endpoint_of
from queue_pipeline.transport.addresses.queues import NSERVICEBUS, layout_of
from queue_pipeline.transport.messages.event import Event, full_name
from queue_pipeline.transport.messages.message import LONGEST_TIME_TO_LIVE, TransactionMode

SHORTEST_PEEK_DELAY = 0.1
LONG_PEEK_DELAY = 10.0
LONGEST_NAME = 60

# A module that declares a pipeline has imported this one, in Dagster's processes and in Spark's workers alike.
allow_early_functions()

ConcurrencyPolicy = Literal["pending", "ramp_up", "fixed"]
Route = Literal["auto", "local", "executors"]


class Output(BaseModel):
    """A queue that a pipeline sends to, and what its messages have in common."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    queue: str = Field(min_length=1)
    message_type: str | None = Field(default=None, description="the .NET type that receivers know it by")
    content_type: str = "application/json"
    time_to_live: float | None = Field(
        default=None, gt=0, le=LONGEST_TIME_TO_LIVE.total_seconds(), description="seconds until a message expires"
    )
    description: str | None = None


def _output(value: object) -> object:
    return Output(queue=value) if isinstance(value, str) else value


def _event(value: object) -> object:
    try:
        return Event(value) if isinstance(value, str) else value
    except ConfigurationError as error:
        raise ValueError(str(error)) from None


class QueuePipeline(BaseModel):
    """One queue, one PySpark function, and the settings of its runs."""

    model_config = ConfigDict(frozen=True, extra="forbid", arbitrary_types_allowed=True)

    name: str = Field(pattern=r"^[a-z][a-z0-9_]*$", max_length=LONGEST_NAME)
    input_queue: str = Field(min_length=1)
    transform: Callable[..., Any]
    output_queues: tuple[Annotated[Output, BeforeValidator(_output)], ...] = ()
    publishes: tuple[Annotated[Event, BeforeValidator(_event)], ...] = ()
    subscribes_to: tuple[str, ...] = Field(default=(), description="event types that the input queue is to receive")
    body_schema: Any = Field(default=None, description="a Spark DDL string, a StructType or a pydantic model")
    description: str | None = None
    owners: tuple[str, ...] = ()

    batch_messages: int = Field(default=40_000, ge=1, le=1_000_000)
    batch_bytes: int = Field(default=64 * 1024 * 1024, ge=1, le=2 * 1024**3)
    route: Route = Field(
        default="auto", description="the backend of its batches; auto: executors on a cluster, else local"
    )
    max_concurrency: int = Field(default=2, ge=1, le=64, description="batches in work at once, over all runs")
    batches_per_run: int | None = Field(
        default=None, ge=1, le=64, description="batches in work at once in one run; as many as are allowed in all"
    )
    concurrency_policy: ConcurrencyPolicy = "pending"
    transaction_mode: TransactionMode = TransactionMode.SENDS_ATOMIC_WITH_RECEIVE
    require_outcome: bool = Field(
        default=False, description="whether a message fails for which the transform returns nothing"
    )

    peek_delay: float = Field(default=1.0, ge=SHORTEST_PEEK_DELAY, description="seconds between peeks at an idle queue")
    linger_seconds: float = Field(
        default=10.0, ge=0, le=3600, description="how long a run waits for more; 0: not at all"
    )
    max_run_seconds: float = Field(default=3600.0, gt=0, description="after this long, a run takes no further batch")
    batch_seconds: float = Field(
        default=900.0, gt=0, le=24 * 3600, description="how long Spark may compute on a batch before it is interrupted"
    )
    start_seconds: float = Field(
        default=90.0,
        ge=10,
        le=3600,
        description="how long a launched run may hold neither a slot nor a batch before it is reported as failed",
    )
    lease_seconds: float = Field(default=300.0, ge=5, le=24 * 3600, description="how long a dead run holds its batches")

    recoverability: Recoverability = Recoverability()
    error_queue: str = Field(default="error", min_length=1)
    audit_queue: str | None = Field(default=None, min_length=1)
    audit_time_to_live: float | None = Field(
        default=None,
        gt=0,
        le=LONGEST_TIME_TO_LIVE.total_seconds(),
        description="seconds until a copy in the audit queue expires",
    )
    oldest_message_seconds: float = Field(
        default=900.0, gt=0, description="the age of a waiting message at which the pipeline's check warns"
    )
    endpoint: str | None = Field(default=None, min_length=1, description="the endpoint's name on the wire")
    reply_to: str | None = Field(
        default=None,
        min_length=1,
        description="the queue for answers to the messages that it sends; its input queue by default",
    )

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigurationError(_explain(values.get("name"), error)) from None

    @field_validator("transform")
    @classmethod
    def _callable_with_one_argument(cls, transform: Callable[..., Any]) -> Callable[..., Any]:
        from inspect import signature

        try:
            signature(transform).bind(object())
        except TypeError:
            raise ValueError(
                "must be a function of one argument, the DataFrame of a batch's messages, that returns what to send"
            ) from None
        return transform

    @field_validator("body_schema")
    @classmethod
    def _supported_schema(cls, schema: object) -> object:
        if schema is not None:
            from queue_pipeline.processing.body.schema import check_body_schema

            try:
                check_body_schema(schema)
            except ConfigurationError as error:
                raise ValueError(str(error)) from None
        return schema

    @field_validator("subscribes_to")
    @classmethod
    def _topics(cls, types: tuple[str, ...]) -> tuple[str, ...]:
        try:
            return tuple(dict.fromkeys(map(full_name, types)))
        except ConfigurationError as error:
            raise ValueError(str(error)) from None

    @field_validator("peek_delay")
    @classmethod
    def _warn_of_long_delay(cls, delay: float) -> float:
        if delay > LONG_PEEK_DELAY:
            warnings.warn(
                f"a peek delay of {delay} s: messages wait that long on an idle queue; the usual is 1 s", stacklevel=2
            )
        return delay

    @model_validator(mode="after")
    def _consistent(self) -> QueuePipeline:
        outputs, events = [output.queue for output in self.output_queues], [event.name for event in self.publishes]
        for field, names in (("output_queues", outputs), ("publishes", events)):
            if repeated := sorted({name for name in names if names.count(name) > 1}):
                raise ValueError(f"{field}: {', '.join(repeated)} is named more than once")
        if self.audit_queue in (self.input_queue, self.error_queue) or self.error_queue == self.input_queue:
            raise ValueError("input_queue, error_queue and audit_queue must be different queues")
        for name in ("error_queue", "audit_queue"):
            if layout_of(getattr(self, name)) != NSERVICEBUS:
                raise ValueError(
                    f"{name}: {getattr(self, name)} is an NGinn queue, and what goes there has NServiceBus headers; "
                    "name a queue of that layout (an NGinn input queue keeps its failed messages itself)"
                )
        if self.subscribes_to and layout_of(self.input_queue) != NSERVICEBUS:
            raise ValueError(
                f"subscribes_to: {self.input_queue} is an NGinn queue, to which NServiceBus publishers cannot send; "
                "subscribe it at an NGinn publisher with: queue-pipeline nginn subscribe"
            )
        if self.batches_per_run is not None and self.batches_per_run > self.max_concurrency:
            raise ValueError(
                f"batches_per_run: {self.batches_per_run} is more than max_concurrency, {self.max_concurrency}"
            )
        if self.audit_time_to_live is not None and self.audit_queue is None:
            raise ValueError("audit_time_to_live: there is no audit_queue for it; name one, or leave it out")
        if self.route == "executors" and self.transaction_mode is TransactionMode.UNRELIABLE:
            raise ValueError(
                "route: executors read a batch from its claim, which transaction_mode unreliable ends first; choose "
                "another mode, or leave route out"
            )
        self._check_retries()
        return self

    def _check_retries(self) -> None:
        """A message of the mode `unreliable` is gone when it fails: there is nothing to try again."""
        given = self.recoverability.model_fields_set & {"immediate_retries", "delayed_retries"}
        wanted = sorted(name for name in given if getattr(self.recoverability, name))
        if wanted and self.transaction_mode is TransactionMode.UNRELIABLE:
            raise ValueError(
                f"recoverability: {' and '.join(wanted)} with transaction_mode unreliable, in which a message is "
                "gone once it was received; choose another mode, or set both to 0"
            )

    @property
    def retries(self) -> Recoverability:
        """The policy that holds: in the mode `unreliable` there are no retries."""
        if self.transaction_mode is not TransactionMode.UNRELIABLE:
            return self.recoverability
        none = {name: getattr(NO_RETRIES, name) for name in ("immediate_retries", "delayed_retries")}
        return self.recoverability.model_copy(update=none)

    @property
    def slots(self) -> int:
        """How many batches one run has in work at once."""
        return self.batches_per_run or self.max_concurrency

    @property
    def endpoint_name(self) -> str:
        """What the pipeline calls itself in the headers of what it sends."""
        return self.endpoint or endpoint_of(self.input_queue)

    @property
    def failed_in(self) -> str:
        """Where messages are that failed: in the error queue, or, of an NGinn queue, in that queue itself."""
        in_place = layout_of(self.input_queue) != NSERVICEBUS
        return f"the failed ones of {self.input_queue}" if in_place else self.error_queue

    @property
    def queues(self) -> tuple[str, ...]:
        """Every queue that the pipeline touches, the input first."""
        named = (self.input_queue, *(output.queue for output in self.output_queues), self.error_queue, self.audit_queue)
        return tuple(dict.fromkeys(queue for queue in named if queue))


def _explain(name: object, error: ValidationError) -> str:
    lines = []
    for problem in error.errors():
        where = ".".join(str(part) for part in problem["loc"])
        message = problem["msg"].removeprefix("Value error, ")
        shown = f" (given: {problem['input']!r})" if problem["loc"] and problem["type"] != "missing" else ""
        lines.append(f"{where}: {message}{shown}" if where else message)
    return f"pipeline {name!r} cannot be loaded: " + "; ".join(lines)
