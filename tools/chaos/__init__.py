"""`scripts/chaos`: competing processes and faults against real databases, and the account of every message."""
