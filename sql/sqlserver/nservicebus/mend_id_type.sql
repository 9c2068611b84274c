-- A column that an index carries cannot be altered: the index on Expires goes and comes back, all or nothing.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DROP INDEX IF EXISTS {expires_index} ON {queue};
ALTER TABLE {queue} ALTER COLUMN [Id] uniqueidentifier NOT NULL;
CREATE NONCLUSTERED INDEX {expires_index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
COMMIT TRANSACTION;
