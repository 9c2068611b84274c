-- The database's clock comes along: a message has expired when expires is not after it.
-- Delete the oldest messages that nobody else is receiving, and return them in order.
-- Rows are found by ctid: queue rows are never updated, so a locked row stays where it is. A join or IN over seq would
-- let the planner run the subquery more than once, and return more rows than asked for.
WITH taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {queue} ORDER BY seq LIMIT ? FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, seq, expires, headers, body
)
SELECT
    CAST(id AS text), seq, expires, now() AT TIME ZONE 'UTC', headers, body,
    NULL AS correlation_id, NULL AS reply_to_address
FROM taken
ORDER BY seq
