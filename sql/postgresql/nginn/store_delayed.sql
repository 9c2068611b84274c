-- Insert messages that are due later: they wait in subqueue R until some reader's scheduler moves them. A message
-- arrives as a JSON text of its columns and its body, packed as in ../nservicebus/send.sql. Parameters: binary bodies,
-- ids (not stored), milliseconds (-1 = for ever), columns, text bodies, offsets (1-based), lengths.
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
    COALESCE(m.body, convert_from(substring(packed.buffer FROM m.start FOR m.size), 'UTF8')),
    COALESCE(CAST(m.columns AS json) ->> 'headers', ''),
    CAST(m.columns AS json) ->> 'unique'
FROM
    (SELECT CAST(? AS bytea) AS buffer OFFSET 0) AS packed,
    LATERAL (
        SELECT
            unnest(CAST(? AS uuid[])) AS id, unnest(CAST(? AS bigint[])) AS ttl,
            unnest(string_to_array(CAST(? AS text), chr(30))) AS columns,
            unnest(string_to_array(NULLIF(CAST(? AS text), ''), chr(30))) AS body,
            unnest(CAST(? AS integer[])) AS start, unnest(CAST(? AS integer[])) AS size
    ) AS m
