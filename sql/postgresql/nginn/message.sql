-- One message, whatever subqueue it is in. Parameter: its id.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(extract(EPOCH FROM q.insert_time) * 1000 AS bigint), q.msg_headers, q.msg_text
FROM {queue} AS q
WHERE q.id = ?
