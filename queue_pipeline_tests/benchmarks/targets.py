"""What the figures should be, by group and name; reported beside them, never enforced: machines are noisy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Target:
    """The bounds of a figure."""

    at_least: float | None = None
    at_most: float | None = None

    def holds(self, value: float) -> bool:
        """Whether a value is within the target."""
        return (self.at_least is None or value >= self.at_least) and (self.at_most is None or value <= self.at_most)

    def __str__(self) -> str:
        bounds = (("≥", self.at_least), ("≤", self.at_most))
        return " and ".join(f"{sign} {bound:g}" for sign, bound in bounds if bound is not None)

    def as_json(self, value: float) -> dict[str, Any]:
        """The bounds that there are, and whether the value is within them."""
        bounds = {"at_least": self.at_least, "at_most": self.at_most}
        return {
            **{name: bound for name, bound in bounds.items() if bound is not None},
            "holds": self.holds(value),
        }


TARGETS = {
    ("ratios", "example_vs_by_hand_x2"): Target(at_least=1.2),
    ("ratios", "example_bad_vs_clean"): Target(at_least=0.95),
    ("ratios", "example_young_vs_warm"): Target(at_least=0.5),
    ("ratios", "example_vs_single_message"): Target(at_least=6),
    ("ratios", "executor_vs_jdbc"): Target(at_least=0.8),
    ("ratios", "send_vs_copy"): Target(at_least=0.79),
    ("ratios", "claim_vs_move"): Target(at_least=0.85),
    ("ratios", "growth_10k_to_1m"): Target(at_most=1.2),
    ("ratios", "peek_1m_vs_1k"): Target(at_most=2),
    ("ratios", "after_1m_vs_fresh"): Target(at_least=0.9),
    ("latency_s", "lingering"): Target(at_most=1.5),
    ("latency_s", "warm_launch"): Target(at_most=4),
    ("latency_s", "cold"): Target(at_most=20),
    ("memory_mb", "stream_200k"): Target(at_most=300),
}
