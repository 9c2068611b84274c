"""A client of Spark tries again only where something listens."""

import socket

from queue_pipeline.processing.spark.session import refuses


def test_a_port_at_which_a_process_listens_does_not_refuse_and_one_that_was_closed_does():
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen()
        port = server.getsockname()[1]
        assert not refuses("127.0.0.1", port)
    assert refuses("127.0.0.1", port)


def test_a_name_that_is_not_found_may_come_back():
    assert not refuses("no-such-machine.invalid", 15002)
