-- Insert messages in subqueue I, due now (a day ago where they are urgent); one that expires carries its time in a
-- header. A message arrives as a JSON text of its columns and its body, packed as in ../nservicebus/send.sql.
-- Parameters: binary bodies, ids (not stored), milliseconds (-1 = for ever), columns, text bodies, offsets (1-based),
-- lengths.
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
    COALESCE(m.body, convert_from(substring(packed.buffer FROM m.start FOR m.size), 'UTF8')),
    (CAST(m.columns AS json) ->> 'headers')
    || CASE
        WHEN COALESCE(m.ttl, -1) = -1 THEN ''
        ELSE (CAST(m.columns AS json) ->> 'expires')
            || to_char(
                date_trunc(
                    'second',
                    (now() AT TIME ZONE 'UTC') + COALESCE(m.ttl, -1) * INTERVAL '1 millisecond'
                        + INTERVAL '999 milliseconds'
                ),
                'YYYY-MM-DD HH24:MI:SS'
            )
    END,
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
