-- Take over one claim for a new owner: released, lease over, or still exactly as the caller knows it, whose holder is dead.
-- Whoever comes second waits for the row and finds it changed. Parameters: owner, lease in milliseconds, and the fence
-- as the caller knows it: claim id, owner, attempt.
-- A holder that ended without a word while it was at it may have been ended by its messages: that counts as a failure.
UPDATE {claims}
SET
    owner = ?,
    attempt = attempt + 1,
    claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + CAST(? AS bigint) * INTERVAL '1 millisecond',
    begun = false,
    failures = failures + CASE WHEN begun THEN 1 ELSE 0 END,
    last_error = CASE WHEN begun THEN owner || ' ended while it was at it' ELSE last_error END
WHERE claim_id = CAST(? AS uuid)
    AND (owner IS NULL OR lease_until <= clock_timestamp() OR (owner = ? AND attempt = ?))
RETURNING CAST(claim_id AS text), queue, owner, attempt, messages, bytes, first_row_version, failures
