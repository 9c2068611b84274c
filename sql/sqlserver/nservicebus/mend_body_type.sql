-- Text does not turn into bytes by ALTER COLUMN: a new column takes them over. In one transaction, whose lock on the
-- table keeps senders out between the copy and the drop; the copy is dynamic SQL, because the batch is compiled before
-- the new column is there.
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
