-- For a table without a clustered index: the structure that the installer makes, which also gives pages back.
CREATE CLUSTERED INDEX {index} ON {queue} ([RowVersion] ASC);
