-- Move a pile of staged results into their queue, in the order in which they were staged, see send.sql.
-- Parameters: claim id, task, pile.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(o.headers AS json) ->> 'from',
    CAST(o.headers AS json) ->> 'to',
    'I',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    CASE
        WHEN CAST(o.headers AS json) ->> 'high' = 'yes' THEN (now() AT TIME ZONE 'UTC') - INTERVAL '1 day'
        ELSE (now() AT TIME ZONE 'UTC')
    END,
    CAST(o.headers AS json) ->> 'correlation',
    CAST(o.headers AS json) ->> 'label',
    convert_from(o.body, 'UTF8'),
    (CAST(o.headers AS json) ->> 'headers')
    || CASE
        WHEN o.milliseconds = -1 THEN ''
        ELSE (CAST(o.headers AS json) ->> 'expires')
            || to_char(
                date_trunc(
                    'second',
                    (now() AT TIME ZONE 'UTC') + o.milliseconds * INTERVAL '1 millisecond'
                        + INTERVAL '999 milliseconds'
                ),
                'YYYY-MM-DD HH24:MI:SS'
            )
    END,
    CAST(o.headers AS json) ->> 'unique'
FROM {outbox} AS o
WHERE o.claim_id = CAST(? AS uuid) AND o.task = ? AND o.pile = ?
ORDER BY o.ordinal
