-- Drop what was staged for a claim that its holder gives up on. Whoever lost the claim drops nothing: what is there may be
-- its next holder's. Parameters: claim id, owner, attempt.
DELETE FROM {outbox} AS o
USING {claims} AS c
WHERE o.claim_id = c.claim_id AND c.claim_id = CAST(? AS uuid) AND c.owner = ? AND c.attempt = ?
