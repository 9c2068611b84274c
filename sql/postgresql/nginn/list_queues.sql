-- Tables of a schema that have the shape of an NGinn queue. Parameter: schema.
SELECT c.relname
FROM pg_class AS c
JOIN pg_namespace AS n ON n.oid = c.relnamespace
WHERE n.nspname = ? AND c.relkind IN ('r', 'p') AND (
    SELECT count(*) FROM pg_attribute AS a
    WHERE a.attrelid = c.oid AND NOT a.attisdropped
        AND a.attname IN ('from_endpoint', 'to_endpoint', 'subqueue', 'retry_time', 'msg_text', 'msg_headers')
) = 6
ORDER BY c.relname
