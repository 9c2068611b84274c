-- Drop all that was ever staged for a claim, by whomever: it is being completed. Parameter: claim id.
DELETE FROM {outbox} WHERE ClaimId = ?
