-- A column that an index carries cannot be altered: both indexes go and come back as the installer makes them, all or
-- nothing. The identity goes on counting where it was.
SET XACT_ABORT ON;
BEGIN TRANSACTION;
DROP INDEX IF EXISTS {expires_index} ON {queue};
DROP INDEX IF EXISTS {row_version_index} ON {queue};
ALTER TABLE {queue} ALTER COLUMN [RowVersion] bigint NOT NULL;
CREATE CLUSTERED INDEX {row_version_index} ON {queue} ([RowVersion] ASC);
CREATE NONCLUSTERED INDEX {expires_index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
COMMIT TRANSACTION;
