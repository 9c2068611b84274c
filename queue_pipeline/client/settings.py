"""How a client consumes its callback queue: settings of its own, apart from those of any other receiver."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from queue_pipeline.errors import ConfigurationError, validation_text

Unmatched = Literal["error", "discard"]


class CallbackSettings(BaseModel):
    """When a client looks into its callback queue, and what happens to unmatched replies."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    first_delay: float = Field(default=0.02, ge=0.001, le=60, description="the pause right after a request")
    peek_delay: float = Field(
        default=0.5, ge=0.001, le=60, description="the longest pause while requests are in flight"
    )
    idle_delay: float = Field(
        default=10.0, ge=0.001, le=3600, description="the pause while none is: for replies that come too late"
    )
    batch: int = Field(default=100, ge=1, le=10_000, description="replies that are taken at once")
    unmatched: Unmatched = Field(default="error", description="what becomes of replies to no request in flight")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            raise ConfigurationError(f"callback settings: {validation_text(error)}") from None

    @model_validator(mode="after")
    def _growing(self) -> CallbackSettings:
        if self.first_delay > self.peek_delay:
            raise ValueError(f"first_delay, {self.first_delay:g} s, is longer than peek_delay, {self.peek_delay:g} s")
        return self
