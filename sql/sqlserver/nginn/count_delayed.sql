-- How many messages wait for their time, up to a limit, and the milliseconds until the next is due; not those that are
-- in work. Parameter: the limit.
SELECT
    (
        SELECT COUNT(*)
        FROM (
            SELECT TOP (?) 1 AS one FROM {queue} AS q WITH (NOLOCK)
            WHERE q.subqueue = 'R'
                AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
        ) AS d
    ),
    (
        SELECT DATEDIFF_BIG(millisecond, GETDATE(), MIN(q.retry_time))
        FROM {queue} AS q WITH (NOLOCK)
        WHERE q.subqueue = 'R'
            AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    )
