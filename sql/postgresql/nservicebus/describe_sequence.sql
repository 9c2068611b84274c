-- The sequence behind seq: schema, name, largest value, last value. USAGE on the sequence is enough to see the last
-- value; without it the view shows NULL, as it does for a sequence that was never used, which is 0 here.
SELECT
    q.schemaname,
    q.sequencename,
    q.max_value,
    CASE WHEN has_sequence_privilege(c.oid, 'SELECT, USAGE') THEN coalesce(q.last_value, 0) END
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
JOIN pg_sequences AS q ON q.schemaname = n.nspname AND q.sequencename = c.relname
WHERE c.oid = CAST(pg_get_serial_sequence({queue_text}, 'seq') AS regclass)
