-- The messages of a claim that failed before. Parameter: claim id.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(? AS uuid) AND q.retry_count > 0
ORDER BY c.id
