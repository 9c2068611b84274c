"""A client for programs that ask a queue and wait for the answer; knows the transport only, no Spark and no Dagster."""

from queue_pipeline.client.client import QueueClient
from queue_pipeline.client.reply import Reply
from queue_pipeline.client.settings import CallbackSettings
from queue_pipeline.errors import ClientClosedError, RequestTimeoutError

__all__ = ["CallbackSettings", "ClientClosedError", "QueueClient", "Reply", "RequestTimeoutError"]
