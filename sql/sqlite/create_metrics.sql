-- Completed claims, for plots and status without scanning.
CREATE TABLE IF NOT EXISTS {metrics} (
    ClaimId TEXT NOT NULL,
    Queue TEXT NOT NULL,
    Owner TEXT NOT NULL,
    Attempt INTEGER NOT NULL,
    Messages INTEGER NOT NULL,
    Bytes INTEGER NOT NULL,
    Sent INTEGER NOT NULL,
    DurationMs INTEGER NOT NULL,
    CompletedAt TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS {metrics_index} ON {metrics} (Queue, CompletedAt);
