-- Look at the messages that are ready, left where they are. Parameter: how many.
SELECT TOP (?)
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text, GETDATE()
FROM {queue} AS q WITH (NOLOCK)
WHERE q.subqueue = 'I'
ORDER BY q.retry_time, q.id
