-- Receive: messages that are ready and held by nobody become processed ones, in a transaction that stays open while
-- they are worked on. Parameter: how many.
WITH head AS MATERIALIZED (
    SELECT id FROM {queue} WHERE subqueue = 'I' ORDER BY {order} LIMIT ? FOR UPDATE SKIP LOCKED
),
taken AS (
    UPDATE {queue} AS q
    SET subqueue = 'X', last_processed = (now() AT TIME ZONE 'UTC')
    FROM head
    WHERE q.id = head.id
    RETURNING
        q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count, q.insert_time,
        q.msg_headers, q.msg_text, q.retry_time
)
SELECT
    id, unique_id, from_endpoint, to_endpoint, correlation_id, label, retry_count,
    CAST(extract(EPOCH FROM insert_time) * 1000 AS bigint), msg_headers, msg_text, now() AT TIME ZONE 'UTC', retry_time
FROM taken
ORDER BY {order}
