-- A queue at a glance: ready, up to a limit; milliseconds since the oldest of those was due. Parameter: the limit.
SELECT
    (SELECT COUNT(*) FROM (SELECT 1 AS one FROM {queue} WHERE subqueue = 'I' LIMIT ?) AS waiting),
    (
        SELECT CAST(extract(EPOCH FROM ((clock_timestamp() AT TIME ZONE 'UTC')) - (MIN(retry_time))) * 1000 AS bigint)
        FROM {queue}
        WHERE subqueue = 'I' AND retry_time <= (clock_timestamp() AT TIME ZONE 'UTC')
    )
