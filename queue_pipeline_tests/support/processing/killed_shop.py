"""The queues of the tests that kill runs, and what has to become of the messages in them."""

from __future__ import annotations

import time
from typing import Any

from queue_pipeline.transport import new_message
from queue_pipeline.transport.addresses.queues import CLAIMED_SUFFIX, CLAIMS_TABLE, DELAYED_SUFFIX
from queue_pipeline.transport.messages import headers as wire
from queue_pipeline_tests.support.databases.backends import Backend
from queue_pipeline_tests.support.databases.elapsed import end_delays, end_leases
from queue_pipeline_tests.support.processing.killed_run import LEDGER, POISON, Run, drain

SETTLED_WITHIN_SECONDS = 60.0


class Shop:
    """The queues of a test, and what has to become of the messages in them."""

    def __init__(self, backend: Backend) -> None:
        self.backend = backend
        self.transport = backend.transport(endpoint="orders")
        self.transport.install("orders", plain_queues=["billing", "error"])
        self._sql(f"CREATE TABLE {self._table(LEDGER)} (number int NOT NULL)")
        self.sent: dict[int, str] = {}

    def send(self, count: int) -> None:
        """Send the next numbers."""
        messages = [new_message(f"{number}") for number in range(len(self.sent), len(self.sent) + count)]
        self.sent |= {int(message.body): message.headers[wire.MESSAGE_ID] for message in messages}
        self.transport.send("orders", messages)

    def run(self, owner: str, **options: Any) -> Run:
        """A run for a child."""
        return Run(self.backend.url, self.backend.schema, owner, **options)

    def leave_behind(self, messages: int) -> None:
        """A claim without a holder: the next run takes it over."""
        claim = self.transport.claim("orders", "polite", messages)
        assert claim is not None
        self.transport.claims.release(claim)

    def release(self, owner: str) -> None:
        """End what the dead held, as the sensor of failed runs does."""
        self.transport.claims.release_owner(owner, died=True)
        self.transport.slots.release_owner(owner)

    def let_the_lease_be_over(self, owner: str) -> None:
        """No sensor noticed that the owner died, and the time of its lease has passed."""
        end_leases(self.backend, self.transport, owner)

    def let_the_delay_be_over(self) -> None:
        """Delayed messages are due: the next run moves them."""
        end_delays(self.backend, self.transport)

    def settle(self) -> None:
        """Run until there is nothing left to do. What a dead process had locked may take a moment to be free."""
        deadline = time.monotonic() + SETTLED_WITHIN_SECONDS
        while self._unsettled():
            assert time.monotonic() < deadline, f"still not settled: {self._unsettled()}"
            assert drain(self.transport, "who comes after").failure is None
            self.let_the_delay_be_over()

    def check(self) -> None:
        """Every good message came out once, every poisoned one is in the error queue once, and nothing is left."""
        good = [number for number in sorted(self.sent) if number not in POISON]
        billing = self.transport.show("billing", 1_000)
        assert sorted(int(shown.body) for shown in billing) == good
        assert len({(shown.headers or {})[wire.MESSAGE_ID] for shown in billing}) == len(good)
        assert sorted(number for (number,) in self._sql(f"SELECT number FROM {self._table(LEDGER)}")) == good
        failed = self.transport.show("error", 1_000)
        assert sorted(int(shown.body) for shown in failed) == sorted(POISON)
        for shown in failed:
            headers = shown.headers or {}
            assert headers[wire.MESSAGE_ID] == self.sent[int(shown.body)]
            assert headers[wire.FAILED_QUEUE] == self.transport.resolve("orders").canonical
            assert headers[wire.EXCEPTION_TYPE].rpartition(".")[2] in ("Poisoned", "AbandonedError")
            assert headers[wire.EXCEPTION_MESSAGE] and headers[wire.EXCEPTION_STACK_TRACE]
            assert wire.RETRIES not in headers and wire.FORWARD_DESTINATION not in headers
        assert not self._unsettled()

    def _unsettled(self) -> dict[str, int]:
        """What is left to do, by table."""
        tables = {
            "queue": self._table("orders"),
            "claims": self.transport.book.own(CLAIMS_TABLE).qualified,
            "claimed": self._sibling(CLAIMED_SUFFIX),
            "delayed": self._sibling(DELAYED_SUFFIX),
        }
        counts = {name: self._sql(f"SELECT count(*) FROM {table}")[0][0] for name, table in tables.items()}
        return {name: count for name, count in counts.items() if count}

    def _table(self, queue: str) -> str:
        return self.transport.resolve(queue).qualified

    def _sibling(self, suffix: str) -> str:
        return self.transport.book.sibling(self.transport.resolve("orders"), suffix).qualified

    def _sql(self, statement: str) -> list:
        return self.backend.sql(self.transport, statement)
