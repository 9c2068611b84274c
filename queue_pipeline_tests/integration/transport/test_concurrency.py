import json
import subprocess
import sys

MESSAGES = 20_000


def test_eight_takers_and_two_senders_share_a_queue_and_every_message_is_taken_once(postgresql):
    """Four claim, four receive, in processes of their own; some of their batches fail and come back."""
    transport = postgresql.transport()
    transport.install("orders")
    transport.install(plain_queues=["done"])
    half = MESSAGES // 2

    def start(part, *numbers):
        command = [
            sys.executable,
            "-m",
            "queue_pipeline_tests.support.databases.traffic",
            part,
            postgresql.url,
            postgresql.schema,
        ]
        return subprocess.Popen([*command, *map(str, numbers)], stdout=subprocess.PIPE, text=True)

    takers = [start(part) for part in ("claim", "receive") for _ in range(4)]
    senders = [start("send", 0, half), start("send", half, MESSAGES)]
    taken = [json.loads(taker.communicate(timeout=240)[0]) for taker in takers]
    for sender in senders:
        sender.communicate(timeout=60)
    assert [process.returncode for process in takers + senders] == [0] * 10
    everything = sorted(number for numbers in taken for number in numbers)
    assert everything == list(range(MESSAGES))
    assert sum(1 for numbers in taken if numbers) >= 2
    assert transport.peek("orders") == 0
    assert transport.claims.list() == []
    claimed = transport.book.claim_tables(transport.resolve("orders")).claimed.qualified
    assert postgresql.sql(transport, f"SELECT count(*) FROM {claimed}")[0][0] == 0
