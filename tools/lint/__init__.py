"""Checks of the project's files that ruff and mypy do not know; `scripts/lint` runs them."""
