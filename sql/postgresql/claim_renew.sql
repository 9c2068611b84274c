-- Renew a lease; touches no row when the claim is no longer this owner's.
-- Parameters: lease in milliseconds, claim id, owner, attempt.
UPDATE {claims}
SET lease_until = clock_timestamp() + CAST(? AS bigint) * INTERVAL '1 millisecond'
WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
