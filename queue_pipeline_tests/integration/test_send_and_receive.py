from queue_pipeline.transport import new_message


def test_a_message_sent_is_received_with_its_headers_and_body(transport):
    transport.send("orders", new_message(b"\x01\x02\x03", headers={"a": "b"}))
    with transport.receive("orders") as batch:
        (message,) = batch
    assert message.body == b"\x01\x02\x03"
    assert message.headers["a"] == "b"
    assert transport.peek("orders") == 0
