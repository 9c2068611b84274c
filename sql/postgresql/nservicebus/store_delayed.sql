-- The same packed insert (see send.sql) into the delayed table. The milliseconds are the delay, negative for the past.
-- now() is an instant here, not a wall clock, so the row is due at the right time in every session time zone.
INSERT INTO {delayed} (id, due, headers, body)
SELECT
    m.id,
    now() + m.delay * INTERVAL '1 millisecond',
    m.headers,
    COALESCE(convert_to(m.body, 'UTF8'), substring(packed.buffer FROM m.start FOR m.size))
FROM
    (SELECT CAST(? AS bytea) AS buffer OFFSET 0) AS packed,
    LATERAL (
        SELECT
            unnest(CAST(? AS uuid[])) AS id, unnest(CAST(? AS bigint[])) AS delay,
            unnest(string_to_array(CAST(? AS text), chr(30))) AS headers,
            unnest(string_to_array(NULLIF(CAST(? AS text), ''), chr(30))) AS body,
            unnest(CAST(? AS integer[])) AS start, unnest(CAST(? AS integer[])) AS size
    ) AS m
