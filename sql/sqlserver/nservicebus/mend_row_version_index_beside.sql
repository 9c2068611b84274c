-- For a table that is clustered on another column already.
CREATE NONCLUSTERED INDEX {index} ON {queue} ([RowVersion] ASC);
