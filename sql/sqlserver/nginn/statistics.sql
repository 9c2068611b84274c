-- The figures of the queue by subqueue, and the average milliseconds between the time at which a message was due and
-- that at which it was processed, over those that were due in the last minutes. The index on subqueue and retry_time
-- serves all of them. Messages in work count as R. Parameter: minutes.
SELECT
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'I'),
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'R'),
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'X'),
    (SELECT COUNT(*) FROM {queue} WITH (NOLOCK) WHERE subqueue = 'F'),
    (
        SELECT AVG(CAST(DATEDIFF_BIG(millisecond, retry_time, last_processed) AS float))
        FROM {queue} WITH (NOLOCK)
        WHERE subqueue = 'X' AND retry_time > DATEADD(minute, -CAST(? AS int), GETDATE())
    )
