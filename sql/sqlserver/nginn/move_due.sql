-- The scheduler's pass: messages whose time has come are ready. Those of batches in work are left to their claims,
-- which may be taken over; other readers return them when the lease is over. Parameter: how many.
UPDATE q
SET subqueue = 'I'
FROM {queue} AS q WITH (READPAST, ROWLOCK)
INNER JOIN (
    SELECT TOP (?) q.id
    FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE q.subqueue = 'R' AND q.retry_time <= GETDATE()
        AND NOT EXISTS (SELECT 1 FROM {claimed} AS c WHERE c.id = q.id AND c.lease = q.retry_time)
    ORDER BY q.retry_time
) AS due ON due.id = q.id;
SELECT @@ROWCOUNT;
