-- Give back every claim that one owner still holds. Parameter: owner.
UPDATE {claims}
SET owner = NULL, lease_until = clock_timestamp()
WHERE owner = ?
RETURNING CAST(claim_id AS text), queue, attempt, messages, bytes, first_row_version
