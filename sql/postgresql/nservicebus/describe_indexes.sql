-- Indexes of a queue table by their first key column, whatever they are called.
-- Columns: name, first key column (none for an expression), clustered (a heap always), filtered, usable (valid, and a
-- B-tree: no other kind gives rows in order).
SELECT
    n.relname,
    a.attname,
    0,
    CASE WHEN i.indpred IS NOT NULL THEN 1 ELSE 0 END,
    CASE WHEN i.indisvalid AND i.indisready AND m.amname = 'btree' THEN 1 ELSE 0 END
FROM pg_index AS i
JOIN pg_class AS n ON n.oid = i.indexrelid
JOIN pg_am AS m ON m.oid = n.relam
LEFT JOIN pg_attribute AS a ON a.attrelid = i.indrelid AND a.attnum = i.indkey[0] AND a.attnum > 0
WHERE i.indrelid = to_regclass({queue_text})
