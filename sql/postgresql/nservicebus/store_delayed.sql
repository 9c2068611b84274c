-- Insert delayed messages; the row is repeated for several. Parameters of a row: id, delay in milliseconds (negative for the
-- past), headers, body. now() is an instant here, not a wall clock, so the row is due at the right time in every session
-- time zone.
INSERT INTO {delayed} (id, due, headers, body)
SELECT m.id, now() + m.delay * INTERVAL '1 millisecond', m.headers, m.body
FROM (
VALUES
(CAST(? AS uuid), CAST(? AS bigint), CAST(? AS text), CAST(? AS bytea))
) AS m (id, delay, headers, body)
