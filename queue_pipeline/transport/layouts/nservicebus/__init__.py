"""The tables of the NServiceBus SQL transport."""
