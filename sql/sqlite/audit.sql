-- name: indexes
-- Indexes of a queue table by their first key column, whatever their names. The rowid is the table's own order and not
-- a separate index. Columns: name (none for the rowid), first key column (none for an expression), clustered, filtered,
-- usable. Locks: none.
SELECT NULL, c.name, 1, 0, 1
FROM pragma_table_xinfo({queue_name}) AS c
WHERE c.pk = 1 AND lower(c.type) = 'integer'
    AND (SELECT count(*) FROM pragma_table_xinfo({queue_name}) AS k WHERE k.pk > 0) = 1
UNION ALL
SELECT i.name, (SELECT k.name FROM pragma_index_info(i.name) AS k WHERE k.seqno = 0), 0, i.partial, 1
FROM pragma_index_list({queue_name}) AS i

-- name: fix_row_version_index
-- For a table whose RowVersion is not the rowid. Locks: the database, as every write.
CREATE INDEX {index} ON {queue} (RowVersion);

-- name: fix_expires_index
-- As the installer creates it. Locks: the database, as every write.
CREATE INDEX {index} ON {queue} (Expires) WHERE Expires IS NOT NULL;

-- name: fix_due_index
-- As the installer creates it. Locks: the database, as every write.
CREATE INDEX {index} ON {delayed} (Due, RowVersion);

-- name: fix_subqueue_index
-- The index that finds the messages of an NGinn queue: by subqueue, in the order in which they are due. Locks: the
-- database, as every write.
CREATE INDEX {index} ON {queue} (subqueue, retry_time, id);

-- name: fix_row_version_type
-- SQLite cannot alter a column: a new table takes the messages over. The write lock keeps senders out between the copy
-- and the drop. A NULL RowVersion is counted up after the others. Columns that no queue has, such as BodyString, are
-- not kept. Locks: the database, as every write.
BEGIN IMMEDIATE;
CREATE TABLE {replacement} (
    Id TEXT NOT NULL,
    Expires TEXT,
    Headers TEXT NOT NULL,
    Body BLOB,
    RowVersion INTEGER PRIMARY KEY AUTOINCREMENT
);
INSERT INTO {replacement} (Id, Expires, Headers, Body, RowVersion)
SELECT Id, Expires, Headers, Body, RowVersion FROM {queue} ORDER BY RowVersion IS NULL, RowVersion, rowid;
DROP TABLE {queue};
ALTER TABLE {replacement} RENAME TO {queue};
CREATE INDEX {expires_index} ON {queue} (Expires) WHERE Expires IS NOT NULL;
COMMIT;
