-- Failed messages after an id, oldest first. Parameters: the id, how many.
SELECT
    q.id, q.unique_id, q.label, q.retry_count, q.error_info,
    CAST(extract(EPOCH FROM ((clock_timestamp() AT TIME ZONE 'UTC')) - (q.retry_time)) * 1000 AS bigint)
FROM {queue} AS q
WHERE q.subqueue = 'F' AND q.id > ?
ORDER BY q.id
LIMIT ?
