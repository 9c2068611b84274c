"""Models of bodies for the tests of parsing."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from typing import Any

from pydantic import (
    BaseModel,
    Field,
    create_model,
)


class Line(BaseModel):
    Sku: str
    Quantity: int = Field(ge=1)
    Price: Decimal = Decimal("1.5")


class Order(BaseModel):
    Id: str
    Lines: list[Line] = []
    At: dt.datetime | None = None
    Note: Any = None


def one_field(annotation: Any, default: Any = ...) -> type[BaseModel]:
    return create_model("M", f=(annotation, default))
