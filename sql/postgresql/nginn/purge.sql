-- Retention: delete processed messages that were due long enough ago, as the reference measures it. Parameters:
-- seconds, how many.
DELETE FROM {queue}
WHERE id = ANY (ARRAY(
    SELECT id FROM {queue}
    WHERE subqueue = 'X'
        AND retry_time <= (now() AT TIME ZONE 'UTC') + (-1000 * CAST(? AS bigint)) * INTERVAL '1 millisecond'
    LIMIT ? FOR UPDATE SKIP LOCKED
))
