"""What the seed decides: the content of every message, what hostile ones do, and the order of the faults."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence

from queue_pipeline.transport import OutgoingMessage, new_message

ORDERS, BILLING, RESULTS, ERRORS = "orders", "billing", "results", "error"
HOSTILE, HOSTILE_RESULTS, HOSTILE_ERRORS = "hostile", "hostile_results", "hostile_error"
INPUTS = (ORDERS, BILLING, HOSTILE)
PLAIN = (RESULTS, ERRORS, HOSTILE_RESULTS, HOSTILE_ERRORS)
TOTALS, BILLED = "order_totals", "billed_totals"

ORDER = "order"
"""The action of the messages of the orders pipeline."""
FINE, VIEW, SETTING, STOP_SPARK = "fine", "view", "setting", "stop_spark"
HARMLESS = (FINE, VIEW, SETTING, STOP_SPARK)
"""What a hostile transform does without harm: all of these messages have to arrive in the results."""
VALUE_ERROR, SYSTEM_EXIT, LONG_TEXT = "value_error", "system_exit", "long_text"
EXIT, DIE, SEGFAULT, HANG, MEMORY = "exit_in_udf", "die_in_udf", "segfault_in_udf", "hang_in_udf", "memory"
HARMFUL = (VALUE_ERROR, SYSTEM_EXIT, LONG_TEXT, EXIT, DIE, SEGFAULT, HANG, MEMORY)
"""What fails its message: all of these have to arrive in the error queue."""
_FINE_PER_ROUND = 12
_CUSTOMERS, _MOST = 7, 1_000


def order(number: int) -> dict[str, int]:
    """The order with this number."""
    return {"number": number, "customer": number % _CUSTOMERS, "amount": number * 37 % _MOST + 1}


def order_message(number: int) -> OutgoingMessage:
    """An order as it is sent."""
    return new_message(json.dumps(order(number)))


def hostile_message(number: int, action: str) -> OutgoingMessage:
    """A message that says what its transform has to do."""
    return new_message(json.dumps({"number": number, "action": action}))


def action(seed: int, number: int, harmful: Sequence[str] = HARMFUL) -> str:
    """What the hostile message with this number does: in each round all actions, in an order of the seed."""
    actions = [*[FINE] * _FINE_PER_ROUND, *(VIEW, SETTING, STOP_SPARK) * 2, *harmful]
    turn, place = divmod(number, len(actions))
    random.Random(f"{seed}/actions/{turn}").shuffle(actions)
    return actions[place]


def fault_order(seed: int, kinds: Sequence[str]) -> Iterator[str]:
    """Kinds of faults without end: each kind once in a round, in an order of the seed."""
    chance = random.Random(f"{seed}/faults")
    while True:
        yield from chance.sample(kinds, len(kinds))
