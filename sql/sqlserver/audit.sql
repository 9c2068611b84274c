-- name: indexes
-- Indexes of a queue table by their first key column: some installations and servers change the names. Read in the
-- queue's own catalog: the connection's would not know the table, and every index would seem missing. Columns: name,
-- first key column, clustered, filtered, usable (a disabled or columnstore index serves no receive). Locks: none.
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

-- name: size
-- In-row pages of a heap and its rows; a table with a clustered index gives no row, because it returns its pages. Pages
-- of large values do not count: a row may need more than ten of them. Columns: pages, rows, dead rows (none here),
-- vacuumed lately. Needs VIEW DATABASE STATE, which a run-time account may lack: the caller then does without. Locks:
-- none.
SELECT SUM(p.in_row_used_page_count), SUM(p.row_count), 0, 0
FROM {sys}.dm_db_partition_stats AS p
WHERE p.object_id = OBJECT_ID({queue_text}, N'U') AND p.index_id = 0
HAVING COUNT(*) > 0

-- name: fix_row_version_index
-- For a table without a clustered index: the structure that the installer creates, which also gives pages back. Locks:
-- the table, exclusively.
CREATE CLUSTERED INDEX {index} ON {queue} ([RowVersion] ASC);

-- name: fix_row_version_index_beside
-- For a table that is already clustered on another column. Locks: the table against writes.
CREATE NONCLUSTERED INDEX {index} ON {queue} ([RowVersion] ASC);

-- name: fix_expires_index
-- Includes Id and RowVersion, so that a purge finds the rows to delete without reading the table. Locks: the table
-- against writes.
CREATE NONCLUSTERED INDEX {index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);

-- name: fix_due_index
-- As the installer creates it. Locks: the table against writes.
CREATE NONCLUSTERED INDEX {index} ON {delayed} ([Due]);

-- name: fix_subqueue_index
-- The index that finds the messages of an NGinn queue, as NGinn.MessageBus creates it: by subqueue, in the order in
-- which they are due. Locks: the table against writes.
CREATE NONCLUSTERED INDEX {index} ON {queue} ([subqueue] ASC, [retry_time] ASC) INCLUDE ([id]);

-- name: fix_id_type
-- A column of an index cannot be altered: the index on Expires is dropped and created again, all or nothing. Locks: the
-- table, exclusively.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DROP INDEX IF EXISTS {expires_index} ON {queue};
ALTER TABLE {queue} ALTER COLUMN [Id] uniqueidentifier NOT NULL;
CREATE NONCLUSTERED INDEX {expires_index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
COMMIT TRANSACTION;

-- name: fix_expires_type
-- A column of an index cannot be altered: the index on Expires is dropped and created again, all or nothing. Locks: the
-- table, exclusively.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DROP INDEX IF EXISTS {expires_index} ON {queue};
ALTER TABLE {queue} ALTER COLUMN [Expires] datetime NULL;
CREATE NONCLUSTERED INDEX {expires_index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
COMMIT TRANSACTION;

-- name: fix_headers_type
-- Characters that are already lost stay lost; no later one is. Locks: the table, exclusively.
ALTER TABLE {queue} ALTER COLUMN [Headers] nvarchar(max) NOT NULL;

-- name: fix_body_type
-- Text does not become bytes by ALTER COLUMN: a new column takes them over. In one transaction, whose lock keeps
-- senders out between the copy and the drop. The copy is dynamic SQL, because the batch is compiled before the new
-- column exists. Locks: the table, exclusively.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
ALTER TABLE {queue} ADD [Body_bytes] varbinary(max) NULL;
DECLARE @table nvarchar(600) = {queue_text}, @copy nvarchar(max), @column nvarchar(700);
SET @copy = N'UPDATE ' + @table + N' SET [Body_bytes] = CONVERT(varbinary(max), [Body])';
EXEC (@copy);
ALTER TABLE {queue} DROP COLUMN [Body];
SET @column = @table + N'.[Body_bytes]';
EXEC {sys}.sp_rename @column, N'Body', N'COLUMN';
COMMIT TRANSACTION;

-- name: fix_row_version_type
-- A column of an index cannot be altered: both indexes are dropped and created again as the installer creates them, all
-- or nothing. The identity goes on counting where it was. Locks: the table, exclusively.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DROP INDEX IF EXISTS {expires_index} ON {queue};
DROP INDEX IF EXISTS {row_version_index} ON {queue};
ALTER TABLE {queue} ALTER COLUMN [RowVersion] bigint NOT NULL;
CREATE CLUSTERED INDEX {row_version_index} ON {queue} ([RowVersion] ASC);
CREATE NONCLUSTERED INDEX {expires_index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
COMMIT TRANSACTION;

-- name: fix_page_bloat
-- Gives the empty pages of a heap back. Locks: the table, exclusively.
ALTER TABLE {queue} REBUILD;
