"""Index audit."""
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Finding:
    """x."""
    queue: str


class IndexAuditor:
    """x."""
    def __init__(self, database, book):
        pass
    def audit(self, queue):
        return []
    def missing_indexes(self, queue):
        return []
