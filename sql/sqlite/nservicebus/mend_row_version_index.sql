-- For a table whose RowVersion is not the rowid.
CREATE INDEX {index} ON {queue} (RowVersion);
