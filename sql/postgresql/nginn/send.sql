-- Insert messages in subqueue I, due now (a day ago where they are urgent); one that expires carries its time in a
-- header. A message arrives as a JSON text of its columns and its body. The row is repeated for several messages.
-- Parameters of a row: id (not stored), milliseconds (-1 = for ever), columns, body.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(m.columns AS json) ->> 'from',
    CAST(m.columns AS json) ->> 'to',
    'I',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    CASE
        WHEN CAST(m.columns AS json) ->> 'high' = 'yes' THEN (now() AT TIME ZONE 'UTC') - INTERVAL '1 day'
        ELSE (now() AT TIME ZONE 'UTC')
    END,
    CAST(m.columns AS json) ->> 'correlation',
    CAST(m.columns AS json) ->> 'label',
    convert_from(m.body, 'UTF8'),
    (CAST(m.columns AS json) ->> 'headers')
    || CASE
        WHEN m.ttl = -1 THEN ''
        ELSE (CAST(m.columns AS json) ->> 'expires')
            || to_char(
                date_trunc(
                    'second',
                    (now() AT TIME ZONE 'UTC') + m.ttl * INTERVAL '1 millisecond'
                        + INTERVAL '999 milliseconds'
                ),
                'YYYY-MM-DD HH24:MI:SS'
            )
    END,
    CAST(m.columns AS json) ->> 'unique'
FROM (
VALUES
(CAST(? AS uuid), CAST(? AS bigint), CAST(? AS text), CAST(? AS bytea))
) AS m (id, ttl, columns, body)
