-- The fence: ends the claim if it is still this owner's, and tells for how many milliseconds it was held.
-- Anything but one row means that it was lost. Parameters: claim id, owner, attempt.
DELETE FROM {claims}
WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
RETURNING CAST(extract(EPOCH FROM clock_timestamp() - claimed_at) * 1000 AS bigint)
