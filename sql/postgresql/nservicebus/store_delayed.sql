-- The same packed insert (see send.sql) into the delayed table. The milliseconds are the delay, negative for the past.
-- now() is an instant here, not a wall clock, so the row is due at the right time in every session time zone.
INSERT INTO {delayed} (id, due, headers, body)
SELECT
    m.id,
    now() + m.delay * INTERVAL '1 millisecond',
    convert_from(substring(packed.buffer FROM m.start FOR m.headers), 'UTF8'),
    substring(packed.buffer FROM m.start + m.headers FOR m.body)
FROM
    (SELECT COALESCE(NULLIF(CAST(? AS bytea), ''), convert_to(CAST(? AS text), 'UTF8')) AS buffer OFFSET 0) AS packed,
    unnest(CAST(? AS uuid[]), CAST(? AS bigint[]), CAST(? AS integer[]), CAST(? AS integer[]), CAST(? AS integer[]))
        AS m (id, delay, start, headers, body)
