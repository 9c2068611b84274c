-- Write the claim's row: its lease runs on the database's clock.
-- Parameters: claim id, queue, owner, messages, bytes, first seq, lease in milliseconds.
INSERT INTO {claims} (claim_id, queue, owner, attempt, messages, bytes, first_row_version, claimed_at, lease_until)
SELECT
    CAST(? AS uuid), ?, ?, 1, CAST(? AS integer), CAST(? AS bigint), CAST(? AS bigint),
    clock_timestamp(), clock_timestamp() + CAST(? AS bigint) * INTERVAL '1 millisecond'
