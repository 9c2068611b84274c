-- Look at the oldest messages without taking them. Parameter: how many.
SELECT
    CAST(id AS text), seq, expires, now() AT TIME ZONE 'UTC', headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM {queue}
ORDER BY seq
LIMIT ?
