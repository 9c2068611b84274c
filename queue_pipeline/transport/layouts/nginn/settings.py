"""The settings of NGinn queues: aliases of this database, known types, retries."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from queue_pipeline.errors import ConfigurationError, validation_text
from queue_pipeline.transport.layouts.nginn.endpoint import is_endpoint, parse_endpoint

VARIABLE = "QUEUE_PIPELINE_NGINN"
RETRY_SECONDS = (30.0, 180.0, 1_200.0, 7_200.0, 28_800.0, 86_400.0, 259_200.0)
"""The seven waits of the reference's configurator: 30 s, 3 min, 20 min, 2 h, 8 h, 24 h, 3 days."""
RETENTION_SECONDS = 10 * 24 * 3600.0
SUBSCRIPTION_SECONDS = 48 * 3600.0
LONGEST_WAIT = 10 * 365 * 24 * 3600.0


class NGinnSettings(BaseModel):
    """The settings of NGinn queues; each has the default of the reference's own configurator."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    aliases: tuple[str, ...] = Field(
        default=(), description="names of connection strings that mean this database in sql://alias/Queue"
    )
    endpoint: str | None = Field(
        default=None, description="the sender of messages that come from no NGinn queue: sql://alias/Queue"
    )
    types: Mapping[str, str] = Field(
        default_factory=dict,
        description="which $type of a body stands for which message type; what is not listed has no type here",
    )
    retry_seconds: tuple[float, ...] = Field(default=RETRY_SECONDS, description="how long each retry waits")
    retention_seconds: float = Field(
        default=RETENTION_SECONDS, ge=0, le=LONGEST_WAIT, description="how long processed messages are kept"
    )
    retention_from: Literal["due", "processed"] = Field(
        default="due", description="from when on that counts: the reference counts from when a message was due"
    )
    fifo: bool = Field(default=False, description="take messages in the order of their ids, not of their due times")
    sequences: bool = Field(default=False, description="hold messages of a sequence back until their turn has come")
    sequences_table: str = Field(default="NGMB_SequenceInfo", min_length=1)
    subscriptions_table: str = Field(default="NGMB_Subscriptions", min_length=1)
    subscription_seconds: float = Field(
        default=SUBSCRIPTION_SECONDS, ge=0, le=LONGEST_WAIT, description="how long a subscription of ours is asked for"
    )

    @field_validator("aliases")
    @classmethod
    def _plain(cls, aliases: tuple[str, ...]) -> tuple[str, ...]:
        for alias in aliases:
            if not alias.strip() or "/" in alias:
                raise ValueError(f"{alias!r} is no alias: it is the name of a connection string, without a slash")
        return aliases

    @field_validator("endpoint")
    @classmethod
    def _an_endpoint(cls, endpoint: str | None) -> str | None:
        if endpoint is not None:
            if not is_endpoint(endpoint):
                raise ValueError(f"{endpoint!r} is no endpoint; write sql://alias/Queue")
            parse_endpoint(endpoint)
        return endpoint

    @field_validator("retry_seconds")
    @classmethod
    def _in_the_future(cls, seconds: tuple[float, ...]) -> tuple[float, ...]:
        if any(not 0 < each <= LONGEST_WAIT for each in seconds):
            raise ValueError("each wait is a number of seconds above zero")
        return seconds

    def type_of(self, dotnet_type: str | None) -> str | None:
        """The message type that a `$type` stands for, if it is on the list."""
        return self.types.get(dotnet_type) if dotnet_type else None

    def dotnet_type(self, message_type: str) -> str | None:
        """The `$type` under which a message type is written: `Namespace.Type, Assembly`."""
        for dotnet, known in self.types.items():
            if message_type in (known, dotnet):
                return dotnet
        name, comma, rest = (part.strip() for part in message_type.partition(","))
        assembly = rest.partition(",")[0].strip()
        return f"{name}, {assembly}" if comma and name and assembly else None


def parse_nginn_settings(text: str | None) -> NGinnSettings:
    """Settings from JSON text, or from the file of that name; nothing is the defaults."""
    if not text or not text.strip():
        return NGinnSettings()
    if not text.lstrip().startswith("{"):
        try:
            text = Path(text).read_text(encoding="utf-8")
        except OSError as error:
            raise ConfigurationError(
                f"{VARIABLE}: {text} cannot be read ({error.strerror}); give a JSON file, or JSON itself"
            ) from error
    try:
        given: Any = json.loads(text)
    except ValueError as error:
        raise ConfigurationError(f"{VARIABLE} is no JSON: {error}") from None
    return nginn_settings(given)


def nginn_settings(given: object) -> NGinnSettings:
    """Settings from what a person typed; an error names the setting and what is allowed."""
    try:
        return NGinnSettings.model_validate(given)
    except ValidationError as error:
        raise ConfigurationError(f"the settings of NGinn queues cannot be used: {validation_text(error)}") from None


def default_nginn_settings() -> NGinnSettings:
    """The settings of the environment."""
    return parse_nginn_settings(os.environ.get(VARIABLE))
