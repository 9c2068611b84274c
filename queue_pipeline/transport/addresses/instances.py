"""Queues of single instances of an endpoint: `<endpoint>.<discriminator>`, where replies to one process arrive."""

from __future__ import annotations

from queue_pipeline.transport.addresses.address import QueueAddress, check_name
from queue_pipeline.transport.addresses.queues import CLAIMED_SUFFIX, DELAYED_SUFFIX
from queue_pipeline.transport.errors import AddressError
from queue_pipeline.transport.messages import headers as wire

_TAKEN = (DELAYED_SUFFIX, CLAIMED_SUFFIX)


def instance_address(endpoint: str, discriminator: str | None = None) -> QueueAddress:
    """The queue of one instance of an endpoint; without a discriminator it is this machine's name.

    Both are names and not addresses: a dot in them does not end a schema.
    """
    name = wire.machine_name() if discriminator is None else discriminator
    for what, text in (("endpoint", endpoint), ("discriminator", name)):
        if not text.strip():
            raise AddressError(f"the {what} of an instance queue is empty; give it a name")
        check_name(text)
    if name.lower() in {suffix.lower() for suffix in _TAKEN}:
        raise AddressError(
            f"{endpoint}.{name} is a table that belongs to the queue {endpoint}; choose another discriminator"
        )
    return QueueAddress(f"{endpoint}.{name}")
