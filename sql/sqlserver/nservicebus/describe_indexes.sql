-- Indexes of a queue table by their first key column: names say nothing, some installations and servers change them.
-- Read in the queue's own catalog: the connection's would not know the table, and every index would seem missing.
-- Columns: name, first key column, clustered, filtered, usable (a disabled or columnstore index serves no receive).
SELECT
    i.name,
    c.name,
    CASE WHEN i.type = 1 THEN 1 ELSE 0 END,
    CASE WHEN i.has_filter = 1 THEN 1 ELSE 0 END,
    CASE WHEN i.type IN (1, 2) AND i.is_disabled = 0 AND i.is_hypothetical = 0 THEN 1 ELSE 0 END
FROM {sys}.indexes AS i
INNER JOIN {sys}.index_columns AS k
    ON k.object_id = i.object_id AND k.index_id = i.index_id AND k.key_ordinal = 1
INNER JOIN {sys}.columns AS c ON c.object_id = k.object_id AND c.column_id = k.column_id
WHERE i.object_id = OBJECT_ID({queue_text}, N'U')
