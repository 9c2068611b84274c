-- The figures of the queue by subqueue, and the average milliseconds between the time at which a message was due and
-- that at which it was processed, over those that were due in the last minutes. Messages in work count as R. Parameter:
-- minutes.
SELECT
    SUM(CASE WHEN subqueue = 'I' THEN 1 ELSE 0 END), SUM(CASE WHEN subqueue = 'R' THEN 1 ELSE 0 END),
    SUM(CASE WHEN subqueue = 'X' THEN 1 ELSE 0 END), SUM(CASE WHEN subqueue = 'F' THEN 1 ELSE 0 END),
    AVG(CASE
        WHEN subqueue = 'X'
            AND retry_time > strftime(
                '%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', (-60000 * CAST(? AS integer)) / 1000.0)
            )
        THEN CAST(round((julianday(last_processed) - julianday(retry_time)) * 86400000) AS INTEGER)
    END)
FROM {queue}
