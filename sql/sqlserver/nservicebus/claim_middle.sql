-- The last RowVersion of a claim's first messages. Parameters: claim id, how many messages stay (at least one), less one.
SELECT RowVersion
FROM {claimed}
WHERE ClaimId = CAST(? AS uniqueidentifier)
ORDER BY RowVersion
OFFSET ? ROWS FETCH NEXT 1 ROWS ONLY
