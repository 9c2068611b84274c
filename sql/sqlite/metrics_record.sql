-- Keep what a completed claim did, for plots and status.
-- Parameters: claim id, queue, owner, attempt, messages, bytes, sent, milliseconds.
INSERT INTO {metrics} (ClaimId, Queue, Owner, Attempt, Messages, Bytes, Sent, DurationMs, CompletedAt)
SELECT ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, strftime('%Y-%m-%d %H:%M:%f', 'now')
