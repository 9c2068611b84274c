-- Look at the messages that are ready, left where they are. Parameter: how many.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER), q.msg_headers, q.msg_text,
    strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM {queue} AS q
WHERE q.subqueue = 'I'
ORDER BY q.retry_time, q.id
LIMIT ?
