-- The last RowVersion of a claim's first messages. Parameters: claim id, how many messages stay (at least one), less one.
SELECT RowVersion FROM {claimed} WHERE ClaimId = ? ORDER BY RowVersion LIMIT 1 OFFSET ?
