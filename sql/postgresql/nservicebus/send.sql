-- Insert many messages that arrive packed: one value holds headers and body of each message end to end, arrays hold
-- what is needed to cut it up again. The value is a text if it can be one, else binary; the other is empty.
-- Parameters: binary, text, ids, milliseconds to live (-1 = for ever), offsets (1-based), lengths of headers, of bodies.
-- OFFSET 0 keeps the subquery whole: otherwise the value would be put together again for each message.
-- now() is the transaction's start on the database's clock, as the reference has it; seq follows the arrays' order.
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    m.id,
    (now() AT TIME ZONE 'UTC') + NULLIF(m.ttl, -1) * INTERVAL '1 millisecond',
    convert_from(substring(packed.buffer FROM m.start FOR m.headers), 'UTF8'),
    substring(packed.buffer FROM m.start + m.headers FOR m.body)
FROM
    (SELECT COALESCE(NULLIF(CAST(? AS bytea), ''), convert_to(CAST(? AS text), 'UTF8')) AS buffer OFFSET 0) AS packed,
    unnest(CAST(? AS uuid[]), CAST(? AS integer[]), CAST(? AS integer[]), CAST(? AS integer[]), CAST(? AS integer[]))
        AS m (id, ttl, start, headers, body)
