-- Look at the messages that are ready, left where they are. Parameter: how many.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint), q.msg_headers, q.msg_text, (now() AT TIME ZONE 'UTC')
FROM {queue} AS q
WHERE q.subqueue = 'I'
ORDER BY q.retry_time, q.id
LIMIT ?
