-- Move a pile of staged results into their queue, in the order in which they were staged, see store_delayed.sql.
-- Parameters: claim id, task, pile.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(o.headers AS json) ->> 'from',
    CAST(o.headers AS json) ->> 'to',
    'R',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    (now() AT TIME ZONE 'UTC') + o.milliseconds * INTERVAL '1 millisecond',
    CAST(o.headers AS json) ->> 'correlation',
    CAST(o.headers AS json) ->> 'label',
    convert_from(o.body, 'UTF8'),
    COALESCE(CAST(o.headers AS json) ->> 'headers', ''),
    CAST(o.headers AS json) ->> 'unique'
FROM {outbox} AS o
WHERE o.claim_id = CAST(? AS uuid) AND o.task = ? AND o.pile = ?
ORDER BY o.ordinal
