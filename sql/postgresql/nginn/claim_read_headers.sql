-- As claim_read.sql with the beginning of the bodies only, for readers that do not want them.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint), q.msg_headers, LEFT(q.msg_text, 400)
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(? AS uuid) AND c.id BETWEEN ? AND ? AND q.subqueue = 'R' AND q.retry_time = c.lease
ORDER BY q.id
