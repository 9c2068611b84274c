-- One part of a claim, in order: the messages that are still its own, with the moment of their sending in milliseconds
-- since 1970. Parameters: claim id, first and last id.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = CAST(? AS uniqueidentifier) AND c.id BETWEEN ? AND ? AND q.subqueue = 'R' AND q.retry_time = c.lease
ORDER BY q.id
