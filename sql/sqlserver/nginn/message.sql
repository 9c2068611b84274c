-- One message, whatever subqueue it is in. Parameter: its id.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text
FROM {queue} AS q
WHERE q.id = ?
