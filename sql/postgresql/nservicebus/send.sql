-- Insert messages; the row is repeated for several. Parameters of a row: id, milliseconds to live (-1 = for ever), headers,
-- body. now() is the transaction's start, as the reference has it; seq follows the order of the rows.
INSERT INTO {queue} (id, expires, headers, body)
SELECT m.id, (now() AT TIME ZONE 'UTC') + NULLIF(m.ttl, -1) * INTERVAL '1 millisecond', m.headers, m.body
FROM (
VALUES
(CAST(? AS uuid), CAST(? AS bigint), CAST(? AS text), CAST(? AS bytea))
) AS m (id, ttl, headers, body)
