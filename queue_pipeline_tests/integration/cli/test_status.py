"""`queue-pipeline status` of queues whose attempts fail."""

from queue_pipeline_tests.support.command_line import CommandLine


def test_a_queue_whose_attempts_fail_is_shown_with_the_last_error(backend):
    cli = CommandLine(backend)
    assert cli("install", "orders").code == 0
    transport = backend.transport()
    address = transport.resolve("orders").canonical
    assert cli("status", "orders", "--json").json["queues"][0]["last_error"] is None
    for error in ("ValueError: first", "EverythingFailsError: the disk is full"):
        transport.failures.add(address, error)
    (status,) = cli("status", "orders", "--json").json["queues"]
    assert (status["failed_attempts"], status["last_error"]) == (2, "EverythingFailsError: the disk is full")
    assert f"{address}: the last 2 attempts failed, for " in cli("status", "orders").out
    transport.failures.clear(address)
    assert "attempts failed" not in cli("status", "orders").out
