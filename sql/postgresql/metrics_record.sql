-- Keep what a completed claim did, for plots and status. Parameters: claim id, queue, owner, attempt, messages, bytes, sent, milliseconds.
INSERT INTO {metrics} (claim_id, queue, owner, attempt, messages, bytes, sent, duration_ms, completed_at)
SELECT
    CAST(? AS uuid), ?, ?, CAST(? AS integer), CAST(? AS integer), CAST(? AS bigint), CAST(? AS integer), CAST(? AS bigint),
    clock_timestamp()
