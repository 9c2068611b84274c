"""Failed messages: what is written of them, looking through them, and returning them to their queues."""
