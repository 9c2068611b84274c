-- Failed messages after an id, oldest first. Parameters: the id, how many.
SELECT
    q.id, q.unique_id, q.label, q.retry_count, q.error_info,
    CAST(round((julianday(strftime('%Y-%m-%d %H:%M:%f', 'now')) - julianday(q.retry_time)) * 86400000) AS INTEGER)
FROM {queue} AS q
WHERE q.subqueue = 'F' AND q.id > ?
ORDER BY q.id
LIMIT ?
