-- Tables that have the shape of an NGinn queue. Parameter: schema, of which there is none.
SELECT m.name
FROM sqlite_master AS m
WHERE ? IS NOT NULL AND m.type = 'table' AND (
    SELECT count(*) FROM pragma_table_info(m.name) AS c
    WHERE c.name IN ('from_endpoint', 'to_endpoint', 'subqueue', 'retry_time', 'msg_text', 'msg_headers')
) = 6
ORDER BY m.name
