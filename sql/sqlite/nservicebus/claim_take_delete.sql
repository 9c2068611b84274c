-- Claim, second half: delete what was copied. Parameter: claim id.
DELETE FROM {queue} WHERE RowVersion IN (SELECT RowVersion FROM {claimed} WHERE ClaimId = ?)
