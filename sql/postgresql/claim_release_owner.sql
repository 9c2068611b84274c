-- Give back every claim that one owner still holds. Parameters: failures to add, owner.
UPDATE {claims}
SET owner = NULL, lease_until = clock_timestamp(), failures = failures + CAST(? AS integer)
WHERE owner = ?
RETURNING CAST(claim_id AS text), queue, attempt, messages, bytes, first_row_version, failures
