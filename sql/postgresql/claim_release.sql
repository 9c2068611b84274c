-- Give a claim back: without an owner nobody can complete it, and the next receiver takes it over first.
-- Parameters: failures to add if it was at it, claim id, owner, attempt.
UPDATE {claims}
SET
    owner = NULL,
    lease_until = clock_timestamp(),
    begun = false,
    failures = failures + CASE WHEN begun THEN CAST(? AS integer) ELSE 0 END
WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
