-- The figures of the queue by subqueue, and the average milliseconds between the time at which a message was due and
-- that at which it was processed, over those that were due in the last minutes. Messages in work count as R. Parameter:
-- minutes.
SELECT
    SUM(CASE WHEN subqueue = 'I' THEN 1 ELSE 0 END), SUM(CASE WHEN subqueue = 'R' THEN 1 ELSE 0 END),
    SUM(CASE WHEN subqueue = 'X' THEN 1 ELSE 0 END), SUM(CASE WHEN subqueue = 'F' THEN 1 ELSE 0 END),
    AVG(CAST(CASE
        WHEN subqueue = 'X' AND retry_time > DATEADD(minute, -CAST(? AS int), GETDATE())
        THEN DATEDIFF_BIG(millisecond, retry_time, last_processed)
    END AS float))
FROM {queue} WITH (NOLOCK)
