-- Move a pile of staged results into their queue, in the order in which they were staged. Parameters: claim id, task, pile.
INSERT INTO {queue} (id, expires, headers, body)
SELECT id, (now() AT TIME ZONE 'UTC') + NULLIF(milliseconds, -1) * INTERVAL '1 millisecond', headers, body
FROM {outbox}
WHERE claim_id = CAST(? AS uuid) AND task = ? AND pile = CAST(? AS integer)
ORDER BY ordinal
