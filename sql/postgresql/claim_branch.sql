-- Write the row of a claim that was split off another: same owner, attempt and lease; it has not failed yet.
-- Parameters: new claim id, messages, bytes, first seq, claim id.
INSERT INTO {claims} (
    claim_id, queue, owner, attempt, messages, bytes, first_row_version, claimed_at, lease_until, last_error
)
SELECT
    CAST(? AS uuid), queue, owner, attempt, CAST(? AS integer), CAST(? AS bigint), CAST(? AS bigint),
    claimed_at, lease_until, last_error
FROM {claims}
WHERE claim_id = CAST(? AS uuid)
