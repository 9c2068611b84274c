-- Tables that have a queue's shape. Parameter: schema, of which there is none here.
SELECT t.name
FROM sqlite_master AS t
WHERE t.type = 'table' AND ? = ''
    AND (
        SELECT count(*) FROM pragma_table_xinfo(t.name) AS c
        WHERE lower(c.name) IN ('id', 'expires', 'headers', 'body', 'rowversion')
    ) = 5
    AND NOT EXISTS (SELECT 1 FROM pragma_table_xinfo(t.name) AS c WHERE lower(c.name) = 'claimid')
ORDER BY t.name
