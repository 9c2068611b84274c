-- The figures of the queue by subqueue, and the average milliseconds between the time at which a message was due and
-- that at which it was processed, over those that were due in the last minutes. The index on subqueue and retry_time
-- serves all of them. Messages in work count as R. Parameter: minutes.
SELECT
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'I'),
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'R'),
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'X'),
    (SELECT COUNT(*) FROM {queue} WHERE subqueue = 'F'),
    (
        SELECT AVG(extract(EPOCH FROM last_processed - retry_time) * 1000)
        FROM {queue}
        WHERE subqueue = 'X' AND retry_time > (now() AT TIME ZONE 'UTC') - CAST(? AS integer) * INTERVAL '1 minute'
    )
