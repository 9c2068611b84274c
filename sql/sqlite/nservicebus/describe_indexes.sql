-- Indexes of a queue table by their first key column, whatever they are called. The rowid is the table's own order, and
-- no index of its own.
-- Columns: name (none for the rowid), first key column (none for an expression), clustered, filtered, usable.
SELECT NULL, c.name, 1, 0, 1
FROM pragma_table_xinfo({queue_name}) AS c
WHERE c.pk = 1 AND lower(c.type) = 'integer'
    AND (SELECT count(*) FROM pragma_table_xinfo({queue_name}) AS k WHERE k.pk > 0) = 1
UNION ALL
SELECT i.name, (SELECT k.name FROM pragma_index_info(i.name) AS k WHERE k.seqno = 0), 0, i.partial, 1
FROM pragma_index_list({queue_name}) AS i
