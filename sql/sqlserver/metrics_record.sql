-- Keep what a completed claim did, for plots and status.
-- Parameters: claim id, queue, owner, attempt, messages, bytes, sent, milliseconds.
INSERT INTO {metrics} (ClaimId, Queue, Owner, Attempt, Messages, Bytes, Sent, DurationMs, CompletedAt)
VALUES (CAST(? AS uniqueidentifier), ?, ?, ?, ?, ?, ?, ?, SYSUTCDATETIME())
