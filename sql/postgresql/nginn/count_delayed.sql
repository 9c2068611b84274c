-- How many messages wait for their time, up to a limit, and the milliseconds until the next is due; not those that are
-- in work. Parameter: the limit.
SELECT
    (
        SELECT COUNT(*)
        FROM (
            SELECT 1 AS one FROM {queue} AS q
            WHERE q.subqueue = 'R'
                AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
            LIMIT ?
        ) AS d
    ),
    (
        SELECT CAST(extract(EPOCH FROM (MIN(q.retry_time)) - ((clock_timestamp() AT TIME ZONE 'UTC'))) * 1000 AS bigint)
        FROM {queue} AS q
        WHERE q.subqueue = 'R'
            AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    )
