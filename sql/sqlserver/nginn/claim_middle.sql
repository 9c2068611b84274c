-- The last id of a claim's first messages. Parameters: claim id, how many messages stay (at least one), less one.
SELECT id
FROM {claimed}
WHERE claim_id = CAST(? AS uniqueidentifier)
ORDER BY id
OFFSET CAST(? AS int) ROWS FETCH NEXT 1 ROWS ONLY
