-- The last id of a claim's first messages. Parameters: claim id, how many messages stay (at least one), less one.
SELECT id FROM {claimed} WHERE claim_id = CAST(? AS uuid) ORDER BY id LIMIT 1 OFFSET ?
