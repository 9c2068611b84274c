-- A queue at a glance: ready, up to a limit; milliseconds since the oldest of those was due. Parameter: the limit.
SELECT
    (SELECT COUNT(*) FROM (SELECT 1 AS one FROM {queue} WHERE subqueue = 'I' LIMIT ?) AS waiting),
    (
        SELECT CAST(
            round((julianday(strftime('%Y-%m-%d %H:%M:%f', 'now')) - julianday(MIN(retry_time))) * 86400000) AS INTEGER
        )
        FROM {queue}
        WHERE subqueue = 'I' AND retry_time <= strftime('%Y-%m-%d %H:%M:%f', 'now')
    )
