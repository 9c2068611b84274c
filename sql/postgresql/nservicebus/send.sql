-- Insert many messages that arrive packed: one binary value holds headers and body of each message end to end,
-- arrays hold what is needed to cut it up again. The driver converts six values instead of four a message.
-- Parameters: buffer, ids, milliseconds to live (-1 = for ever), offsets (1-based), lengths of headers, lengths of bodies.
-- now() is the transaction's start on the database's clock, as the reference has it; seq follows the arrays' order.
WITH packed AS MATERIALIZED (
    SELECT CAST(? AS bytea) AS buffer
)
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    m.id,
    (now() AT TIME ZONE 'UTC') + NULLIF(m.ttl, -1) * INTERVAL '1 millisecond',
    convert_from(substring(packed.buffer FROM m.start FOR m.headers), 'UTF8'),
    substring(packed.buffer FROM m.start + m.headers FOR m.body)
FROM packed,
    unnest(CAST(? AS uuid[]), CAST(? AS integer[]), CAST(? AS integer[]), CAST(? AS integer[]), CAST(? AS integer[]))
        AS m (id, ttl, start, headers, body)
