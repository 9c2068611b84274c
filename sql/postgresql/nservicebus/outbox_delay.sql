-- Move a pile of staged results into a delayed table; the delay counts from now. Parameters: claim id, task, pile.
INSERT INTO {delayed} (id, due, headers, body)
SELECT id, now() + milliseconds * INTERVAL '1 millisecond', headers, body
FROM {outbox}
WHERE claim_id = CAST(? AS uuid) AND task = ? AND pile = CAST(? AS integer)
ORDER BY ordinal
