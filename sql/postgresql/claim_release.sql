-- Give a claim back: without an owner nobody can complete it, and the next receiver takes it over first.
-- Parameters: failures to add, claim id, owner, attempt.
UPDATE {claims}
SET owner = NULL, lease_until = clock_timestamp(), failures = failures + CAST(? AS integer)
WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
