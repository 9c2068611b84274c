-- Receive: messages that are ready become processed ones, in a transaction that stays open while they are worked on.
-- The rows come back in no order, each with the time at which it was due. Parameter: how many.
UPDATE {queue}
SET subqueue = 'X', last_processed = strftime('%Y-%m-%d %H:%M:%f', 'now')
WHERE id IN (SELECT id FROM {queue} WHERE subqueue = 'I' ORDER BY {order} LIMIT ?)
RETURNING
    id, unique_id, from_endpoint, to_endpoint, correlation_id, label, retry_count,
    CAST(round((julianday(insert_time) - 2440587.5) * 86400000) AS INTEGER), msg_headers, msg_text,
    strftime('%Y-%m-%d %H:%M:%f', 'now'), retry_time
