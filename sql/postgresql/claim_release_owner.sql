-- Give back every claim that one owner still holds. Parameters: failures to add if it was at it, owner.
UPDATE {claims}
SET
    owner = NULL,
    lease_until = clock_timestamp(),
    begun = false,
    failures = failures + CASE WHEN begun THEN CAST(? AS integer) ELSE 0 END
WHERE owner = ?
RETURNING CAST(claim_id AS text), queue, attempt, messages, bytes, first_row_version, failures
