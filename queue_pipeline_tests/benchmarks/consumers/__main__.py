"""One consumer as a process: it reads orders as lines of JSON, and answers each with a line.

python -m queue_pipeline_tests.benchmarks.consumers MODULE CLASS
"""

from __future__ import annotations

import importlib
import json
import os
import sys

from queue_pipeline_tests.benchmarks.consumers.crew import READY, URL_VARIABLE


def main(module: str, name: str) -> None:
    """Make the consumer, say so, and do what comes in until nothing more does."""
    consumer = getattr(importlib.import_module(f"{__package__}.{module}"), name)(os.environ[URL_VARIABLE])
    # Libraries may print what they like; the answers have a channel of their own.
    answers, sys.stdout = sys.stdout, sys.stderr
    print(READY, file=answers, flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        answer = getattr(consumer, order.pop("do"))(**order)
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
