-- As claim_read.sql with the beginning of the bodies only, for readers that do not want them.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, LEFT(q.msg_text, 400)
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND c.id BETWEEN ? AND ? AND q.subqueue = 'R' AND q.retry_time = c.lease
ORDER BY q.id
