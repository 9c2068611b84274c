-- Drop what was staged for a claim that its holder gives up on. Whoever lost the claim drops nothing: what is there may be
-- its next holder's. Parameters: claim id, owner, attempt.
DELETE FROM {outbox}
WHERE ClaimId = (SELECT ClaimId FROM {claims} WHERE ClaimId = ? AND Owner = ? AND Attempt = ?)
