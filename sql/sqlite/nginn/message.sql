-- One message, whatever subqueue it is in. Parameter: its id.
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    CAST(round((julianday(q.insert_time) - 2440587.5) * 86400000) AS INTEGER), q.msg_headers, q.msg_text
FROM {queue} AS q
WHERE q.id = ?
