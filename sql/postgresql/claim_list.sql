-- Every claim, oldest messages first, with what is left of its lease in milliseconds on the database's clock.
-- Parameters: queue, queue ('' = every queue).
SELECT
    CAST(claim_id AS text), queue, owner, attempt, messages, bytes, first_row_version,
    CAST(extract(EPOCH FROM lease_until - clock_timestamp()) * 1000 AS bigint),
    CAST(extract(EPOCH FROM clock_timestamp() - claimed_at) * 1000 AS bigint),
    failures, last_error
FROM {claims}
WHERE ? = '' OR queue = ?
ORDER BY queue, first_row_version
