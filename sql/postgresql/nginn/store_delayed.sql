-- Insert messages that are due later: they wait in subqueue R until some reader's scheduler moves them. A message
-- arrives as a JSON text of its columns and its body. The row is repeated for several messages. Parameters of a row:
-- id (not stored), delay in milliseconds, columns, body.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    CAST(m.columns AS json) ->> 'from',
    CAST(m.columns AS json) ->> 'to',
    'R',
    (now() AT TIME ZONE 'UTC'),
    NULL,
    0,
    (now() AT TIME ZONE 'UTC') + m.ttl * INTERVAL '1 millisecond',
    CAST(m.columns AS json) ->> 'correlation',
    CAST(m.columns AS json) ->> 'label',
    convert_from(m.body, 'UTF8'),
    COALESCE(CAST(m.columns AS json) ->> 'headers', ''),
    CAST(m.columns AS json) ->> 'unique'
FROM (
VALUES
(CAST(? AS uuid), CAST(? AS bigint), CAST(? AS text), CAST(? AS bytea))
) AS m (id, ttl, columns, body)
