-- Tables that have a queue's shape. Parameter: schema.
SELECT t.relname
FROM pg_class AS t
JOIN pg_namespace AS n ON n.oid = t.relnamespace
WHERE t.relkind IN ('r', 'p') AND n.nspname = ?
    AND (
        SELECT count(*) FROM pg_attribute AS a
        WHERE a.attrelid = t.oid AND NOT a.attisdropped
            AND a.attname IN ('id', 'expires', 'headers', 'body', 'seq')
    ) = 5
    AND NOT EXISTS (
        SELECT 1 FROM pg_attribute AS a WHERE a.attrelid = t.oid AND a.attname = 'claim_id' AND NOT a.attisdropped
    )
ORDER BY t.relname
