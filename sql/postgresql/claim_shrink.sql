-- Set what is left in a claim after part of it was split off or moved away, if it is still this owner's.
-- What is left has not failed yet.
-- Parameters: messages, bytes, first seq, claim id, owner, attempt.
UPDATE {claims}
SET messages = CAST(? AS integer), bytes = CAST(? AS bigint), first_row_version = CAST(? AS bigint),
    begun = false, failures = 0
WHERE claim_id = CAST(? AS uuid) AND owner = ? AND attempt = ?
