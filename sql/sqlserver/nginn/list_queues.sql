-- Tables of a schema that have the shape of an NGinn queue. Parameter: schema.
SELECT CAST(t.name AS nvarchar(128))
FROM {sys}.tables AS t
INNER JOIN {sys}.schemas AS s ON s.schema_id = t.schema_id
WHERE s.name = ?
    AND (
        SELECT COUNT(*) FROM {sys}.columns AS c
        WHERE c.object_id = t.object_id
            AND LOWER(c.name) IN ('from_endpoint', 'to_endpoint', 'subqueue', 'retry_time', 'msg_text', 'msg_headers')
    ) = 6
ORDER BY t.name
