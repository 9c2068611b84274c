"""How executors reach the database: this process sends its settings with the code, or each machine has its own."""

from __future__ import annotations

import os
import pickle
from dataclasses import dataclass, replace

from queue_pipeline.errors import ConfigurationError
from queue_pipeline.transport import QueueTransport
from queue_pipeline.transport.database.setting import ENVIRONMENT_VARIABLE, database_url
from queue_pipeline.transport.settings import TransportSettings

EXECUTOR_VARIABLE = "QUEUE_PIPELINE_EXECUTOR_DATABASE"
FROM_ENVIRONMENT = "environment"

MOST_TRANSPORTS = 4
"""A worker keeps connections to at most this many databases or schemas, and closes the oldest."""
_transports: dict[bytes, QueueTransport] = {}


@dataclass(frozen=True)
class ExecutorSettings:
    """What an executor makes its transport of. It is pickled and never an option: no plan, log or page shows it."""

    transport: TransportSettings
    from_environment: bool = False
    """Whether each machine finds the database in its own `QUEUE_PIPELINE_DATABASE`."""

    def open(self) -> QueueTransport:
        """The transport of this process, made once: a worker keeps its connections from task to task."""
        key = pickle.dumps(self)
        if key not in _transports:
            while len(_transports) >= MOST_TRANSPORTS:
                # A worker outlives many jobs, and those of another database or schema leave their connections open.
                _transports.pop(next(iter(_transports))).close()
            _transports[key] = QueueTransport.of(self._here())
        return _transports[key]

    def _here(self) -> TransportSettings:
        if not self.from_environment:
            return self.transport
        named = os.environ.get(ENVIRONMENT_VARIABLE)
        if not named:
            raise ConfigurationError(
                f"{EXECUTOR_VARIABLE} is {FROM_ENVIRONMENT!r}, and this executor has no {ENVIRONMENT_VARIABLE}; set it "
                "in the environment of Spark's workers, or leave the former out"
            )
        return replace(self.transport, database=database_url(named))


def executor_settings(transport: QueueTransport) -> ExecutorSettings:
    """The settings for executors: those of this process, unless `QUEUE_PIPELINE_EXECUTOR_DATABASE` says otherwise."""
    settings = transport.settings
    if settings is None:
        raise ConfigurationError(
            "executors cannot make the engine that the program supplies; name the "
            "database by its setting, or process batches in this process (route='local')"
        )
    named = os.environ.get(EXECUTOR_VARIABLE)
    if named == FROM_ENVIRONMENT:
        return ExecutorSettings(replace(settings, database=database_url("sqlite:///nowhere")), True)
    if named:
        settings = replace(settings, database=database_url(named))
    return ExecutorSettings(settings)
