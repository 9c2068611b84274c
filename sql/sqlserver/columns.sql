-- Columns of a queue table, which tell its version.
SELECT c.name, t.name
FROM {sys}.columns AS c
INNER JOIN {sys}.types AS t ON t.user_type_id = c.user_type_id
WHERE c.object_id = OBJECT_ID({queue_text}, N'U')
