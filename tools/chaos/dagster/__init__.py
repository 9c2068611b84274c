"""`scripts/chaos --dagster`: a deployment under faults: how long it stood still, and the account of every message."""
