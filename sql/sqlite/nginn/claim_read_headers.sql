-- As claim_read.sql with the beginning of the bodies only, for readers that do not want them.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER), q.msg_headers, substr(q.msg_text, 1, 400)
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = ? AND c.id BETWEEN ? AND ? AND q.subqueue = 'R' AND q.retry_time = c.lease
ORDER BY q.id
