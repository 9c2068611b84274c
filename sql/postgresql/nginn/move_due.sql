-- The scheduler's pass: messages whose time has come are ready. Those of batches in work are left to their claims,
-- which may be taken over; other readers return them when the lease is over. Parameter: how many.
UPDATE {queue}
SET subqueue = 'I'
WHERE id = ANY (ARRAY(
    SELECT q.id
    FROM {queue} AS q
    WHERE q.subqueue = 'R' AND q.retry_time <= (clock_timestamp() AT TIME ZONE 'UTC')
        AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    ORDER BY q.retry_time
    LIMIT ?
    FOR UPDATE OF q SKIP LOCKED
))
