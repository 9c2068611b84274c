-- Tables that have a queue's shape. Parameter: schema.
SELECT CAST(t.name AS nvarchar(128))
FROM {sys}.tables AS t
INNER JOIN {sys}.schemas AS s ON s.schema_id = t.schema_id
WHERE s.name = ?
    AND (
        SELECT COUNT(*) FROM {sys}.columns AS c
        WHERE c.object_id = t.object_id AND LOWER(c.name) IN ('id', 'expires', 'headers', 'body', 'rowversion')
    ) = 5
    AND NOT EXISTS (
        SELECT 1 FROM {sys}.columns AS c WHERE c.object_id = t.object_id AND LOWER(c.name) = 'claimid'
    )
ORDER BY t.name
