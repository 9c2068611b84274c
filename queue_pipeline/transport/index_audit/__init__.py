"""The index audit: how a queue's tables are built, and what is missing, outdated or bloated."""
