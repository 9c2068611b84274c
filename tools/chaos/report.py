"""What a run of chaos found, as a value, as JSON and as a table for people."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from tools.chaos.accountant import NAMED, Account


@dataclass(frozen=True)
class Report:
    """The outcome of one run."""

    seed: int
    seconds: float
    drain_seconds: float
    accounts: list[Account]
    faults: Counter[str]
    work: Counter[tuple[str, str]]
    unexpected: Counter[str]

    @property
    def is_right(self) -> bool:
        """Whether every message is accounted for and nothing unexpected happened."""
        return all(account.is_right for account in self.accounts) and not self.unexpected

    @property
    def totals(self) -> dict[str, int]:
        """How many differences of each kind there are, over all databases."""
        totals: Counter[str] = Counter()
        for account in self.accounts:
            totals.update({kind: found.total() for kind, found in account.differences.items()})
        return dict(totals)

    def as_json(self) -> dict[str, Any]:
        """All of it, differences by name up to a number."""
        return {
            "seed": self.seed,
            "seconds": round(self.seconds, 1),
            "drain_seconds": round(self.drain_seconds, 1),
            "messages": sum(account.sent for account in self.accounts),
            "right": self.is_right,
            **self.totals,
            "faults": dict(sorted(self.faults.items())),
            "databases": [self._account_json(account) for account in self.accounts],
            "work": self._work_by_kind(),
            "unexpected": dict(self.unexpected.most_common(NAMED)),
        }

    def lines(self) -> list[str]:
        """The same for people."""
        width = max(len(account.arena) for account in self.accounts)
        lines = [
            f"seed {self.seed}, {self.seconds:.0f} s of faults, {self.drain_seconds:.0f} s until all was processed",
            "",
        ]
        columns = ("sent", "results", "failed", "copies", "effects", *self.accounts[0].differences)
        lines.append("  ".join([" " * width, *(f"{name:>10}" for name in columns)]))
        for account in self.accounts:
            figures = [account.sent, account.results, account.failed, account.copies, account.effects]
            figures += [found.total() for found in account.differences.values()]
            lines.append("  ".join([f"{account.arena:{width}}", *(f"{figure:>10,}" for figure in figures)]))
        lines += ["", "faults: " + ", ".join(f"{count:,} {name}" for name, count in sorted(self.faults.items())), ""]
        for kind, actions in self._work_by_kind().items():
            lines.append(f"{kind}: " + ", ".join(f"{count:,} {action}" for action, count in actions.items()))
        for account in self.accounts:
            for difference, found in account.differences.items():
                lines += [
                    f"{account.arena}, {difference}: {what} ({count})" for what, count in found.most_common(NAMED)
                ]
        for what, count in self.unexpected.most_common(5):
            lines += ["", f"{count} times {what}"]
        return [*lines, "", "every message is accounted for" if self.is_right else "NOT everything is as it should be"]

    def _work_by_kind(self) -> dict[str, dict[str, int]]:
        ordered = sorted((kind, action, count) for (kind, action), count in self.work.items() if count)
        return {
            kind: {action: count for _, action, count in found}
            for kind, found in groupby(ordered, key=lambda one: one[0])
        }

    @staticmethod
    def _account_json(account: Account) -> dict[str, Any]:
        return {
            "database": account.arena,
            **{name: getattr(account, name) for name in ("sent", "results", "failed", "copies", "effects")},
            **{kind: dict(found.most_common(NAMED)) for kind, found in account.differences.items()},
        }
