import json

import pytest

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport.layouts.nginn.settings import (
    NGinnSettings,
    default_nginn_settings,
    nginn_settings,
    parse_nginn_settings,
)


@pytest.mark.parametrize("text", [None, "", "  "])
def test_empty_settings_are_the_defaults_of_the_reference(text):
    settings = parse_nginn_settings(text)
    assert settings == NGinnSettings()
    assert settings.retry_seconds == (30, 180, 1_200, 7_200, 28_800, 86_400, 259_200)
    assert settings.retention_seconds == 10 * 24 * 3600
    assert settings.retention_from == "due"
    assert settings.subscription_seconds == 48 * 3600
    assert (settings.subscriptions_table, settings.sequences_table) == ("NGMB_Subscriptions", "NGMB_SequenceInfo")
    assert (settings.fifo, settings.sequences, settings.aliases) == (False, False, ())


def test_settings_are_json_or_a_file_of_it(tmp_path, monkeypatch):
    given = {"aliases": ["db"], "endpoint": "sql://db/Me", "types": {"A.B, C": "b"}}
    file = tmp_path / "nginn.json"
    file.write_text(json.dumps(given))
    expected = NGinnSettings(aliases=("db",), endpoint="sql://db/Me", types={"A.B, C": "b"})
    assert parse_nginn_settings(json.dumps(given)) == expected
    assert parse_nginn_settings(str(file)) == expected
    monkeypatch.setenv("QUEUE_PIPELINE_NGINN", str(file))
    assert default_nginn_settings() == expected


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("/no/such/file", r"/no/such/file cannot be read \(No such file"),
        ("{", "is no JSON"),
        ('{"aliases": "db"}', "aliases"),
        ('{"alias": ["db"]}', "alias: Extra inputs"),
        ('{"aliases": ["a/b"]}', "'a/b' is no alias"),
        ('{"aliases": [" "]}', "' ' is no alias"),
        ('{"endpoint": "orders"}', "'orders' is no endpoint; write sql://alias/Queue"),
        ('{"endpoint": "sql://db/a/b"}', "sql://alias/Queue"),
        ('{"endpoint": "sql://db/my orders"}', "letters, digits and _"),
        ('{"retry_seconds": [0]}', "retry_seconds: each wait is a number of seconds above zero"),
        ('{"retry_seconds": [-1, 5]}', "retry_seconds: each wait"),
        ('{"retry_seconds": [1e12]}', "retry_seconds: each wait"),
        ('{"retention_seconds": -1}', "retention_seconds"),
        ('{"retention_from": "sent"}', "retention_from"),
        ('{"sequences_table": ""}', "sequences_table"),
        ('{"subscriptions_table": ""}', "subscriptions_table"),
        ('{"subscription_seconds": -1}', "subscription_seconds"),
        ('{"types": ["a"]}', "types"),
    ],
)
def test_what_cannot_be_used_is_named(text, problem):
    with pytest.raises(ConfigurationError, match=problem):
        parse_nginn_settings(text)


@pytest.mark.parametrize("given", [None, [], "text", 5])
def test_settings_are_an_object(given):
    with pytest.raises(ConfigurationError, match="the settings of NGinn queues cannot be used: Input should be"):
        nginn_settings(given)


def test_a_type_is_known_only_from_the_list():
    settings = NGinnSettings(types={"A.B, C": "b"})
    assert settings.type_of("A.B, C") == "b"
    assert [settings.type_of(one) for one in ("a.b, C", "A.B", None, "")] == [None] * 4


@pytest.mark.parametrize(
    ("message_type", "expected"),
    [
        ("b", "A.B, C"),
        ("A.B, C", "A.B, C"),
        ("X.Y, Z, Version=1.0.0.0", "X.Y, Z"),
        ("X.Y,Z", "X.Y, Z"),
        ("X.Y", None),
        ("X.Y,", None),
        (", Z", None),
    ],
)
def test_a_message_type_is_written_as_the_listed_one_or_with_its_assembly(message_type, expected):
    assert NGinnSettings(types={"A.B, C": "b"}).dotnet_type(message_type) == expected
