-- The figures of the queue by subqueue, and the average milliseconds between the time at which a message was due and
-- that at which it was processed, over those that were due in the last minutes. Messages in work count as R. Parameter:
-- minutes.
SELECT
    SUM(CASE WHEN subqueue = 'I' THEN 1 ELSE 0 END), SUM(CASE WHEN subqueue = 'R' THEN 1 ELSE 0 END),
    SUM(CASE WHEN subqueue = 'X' THEN 1 ELSE 0 END), SUM(CASE WHEN subqueue = 'F' THEN 1 ELSE 0 END),
    AVG(CASE
        WHEN subqueue = 'X'
            AND retry_time > (now() AT TIME ZONE 'UTC') + (-60000 * CAST(? AS integer)) * INTERVAL '1 millisecond'
        THEN CAST(extract(EPOCH FROM (last_processed) - (retry_time)) * 1000 AS bigint)
    END)
FROM {queue}
