"""Reading a schema written as Spark DDL without Spark: its own parser needs a running session."""

from __future__ import annotations

import re

from pyspark.sql import types as T

from queue_pipeline.errors import ConfigurationError

_TOKEN = re.compile(r"\s*(?:(`(?:[^`]|``)+`)|(\w+)|((?:'(?:[^'\\]|\\.)*')+|(?:\"(?:[^\"\\]|\\.)*\")+)|([<>(),:]))")

_SIMPLE: dict[str, type[T.DataType]] = {
    "string": T.StringType,
    "boolean": T.BooleanType,
    "tinyint": T.ByteType,
    "byte": T.ByteType,
    "smallint": T.ShortType,
    "short": T.ShortType,
    "int": T.IntegerType,
    "integer": T.IntegerType,
    "bigint": T.LongType,
    "long": T.LongType,
    "float": T.FloatType,
    "real": T.FloatType,
    "double": T.DoubleType,
    "date": T.DateType,
    "timestamp": T.TimestampType,
    "timestamp_ltz": T.TimestampType,
    "timestamp_ntz": T.TimestampNTZType,
    "binary": T.BinaryType,
}
_DECIMAL = ("decimal", "dec", "numeric")


def parse_ddl(text: str) -> T.StructType:
    """`OrderId string NOT NULL, Lines array<struct<Quantity: int>>` as a type; `struct<…>` around it is allowed."""
    return _Reader(text).schema()


class _Reader:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = self._split(text)
        self._at = 0

    def schema(self) -> T.StructType:
        wrapped = [token.lower() for token in self._tokens[:2]] == ["struct", "<"]
        if wrapped:
            self._at = 2
        fields = self._fields("")
        if wrapped:
            self._expect(">", "the schema")
        if self._peek():
            raise self._error(f"unexpected {self._peek()!r} after field {fields[-1].name}")
        return T.StructType(fields)

    def _fields(self, path: str) -> list[T.StructField]:
        fields = [self._field(path)]
        while self._take(","):
            fields.append(self._field(path))
        return fields

    def _field(self, path: str) -> T.StructField:
        name = self._name(path)
        self._take(":")
        place = f"{path}{name}"
        type_ = self._type(place)
        nullable = True
        if self._take("not"):
            self._expect("null", place)
            nullable = False
        if self._take("comment"):
            self._next(place)
        return T.StructField(name, type_, nullable)

    def _type(self, place: str) -> T.DataType:
        name = self._next(place).lower()
        if name in _SIMPLE:
            return _SIMPLE[name]()
        if name in _DECIMAL:
            return self._decimal(place)
        if name not in ("array", "map", "struct"):
            raise self._error(
                f"field {place} has type {name}; use one of {', '.join(_SIMPLE)}, decimal, array, map, struct"
            )
        self._expect("<", place)
        if name == "array":
            type_: T.DataType = T.ArrayType(self._type(f"{place}[]"))
        elif name == "map":
            key = self._type(f"{place}[key]")
            self._expect(",", place)
            type_ = T.MapType(key, self._type(f"{place}[]"))
        else:
            type_ = T.StructType([] if self._peek() == ">" else self._fields(f"{place}."))
        self._expect(">", place)
        return type_

    def _decimal(self, place: str) -> T.DecimalType:
        precision, scale = 10, 0
        if self._take("("):
            precision = self._number(place)
            if self._take(","):
                scale = self._number(place)
            self._expect(")", place)
        if not 0 <= scale <= precision <= 38:
            raise self._error(f"field {place} has type decimal({precision},{scale}); use at most 38 digits")
        return T.DecimalType(precision, scale)

    def _number(self, place: str) -> int:
        word = self._next(place)
        if not word.isdecimal():
            raise self._error(f"expected a number in the type of field {place}, found {word!r}")
        return int(word)

    def _name(self, path: str) -> str:
        word = self._next(path.rstrip(".") or "the schema")
        if word.startswith("`"):
            return word[1:-1].replace("``", "`")
        if not re.fullmatch(r"\w+", word):
            raise self._error(f"expected a field name, found {word!r}")
        return word

    def _peek(self) -> str:
        return self._tokens[self._at] if self._at < len(self._tokens) else ""

    def _take(self, word: str) -> bool:
        found = self._peek().lower() == word
        self._at += found
        return found

    def _next(self, place: str) -> str:
        word = self._peek()
        if not word:
            raise self._error(f"it ends in the middle of {place}")
        self._at += 1
        return word

    def _expect(self, word: str, place: str) -> None:
        if not self._take(word):
            raise self._error(f"expected {word!r} in {place}, found {self._peek() or 'the end'!r}")

    def _split(self, text: str) -> list[str]:
        tokens, at, text = [], 0, text.rstrip()
        while at < len(text):
            match = _TOKEN.match(text, at)
            if match is None:
                raise self._error(f"cannot read {text[at:].lstrip()[:20]!r}")
            tokens.append(match.group().lstrip())
            at = match.end()
        return tokens

    def _error(self, words: str) -> ConfigurationError:
        return ConfigurationError(f"body schema {self._text!r}: {words}")
