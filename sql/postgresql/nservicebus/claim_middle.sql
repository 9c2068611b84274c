-- The last seq of a claim's first messages. Parameters: claim id, how many messages stay (at least one), less one.
SELECT seq FROM {claimed} WHERE claim_id = CAST(? AS uuid) ORDER BY seq LIMIT 1 OFFSET ?
