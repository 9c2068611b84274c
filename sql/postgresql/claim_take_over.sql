-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
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
WHERE claim_id = (
    SELECT claim_id
    FROM {claims}
    WHERE queue = ? AND lease_until <= clock_timestamp()
    ORDER BY first_row_version
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING CAST(claim_id AS text), queue, owner, attempt, messages, bytes, first_row_version, failures
