-- Carries Id and RowVersion, so that a purge finds what it deletes without reading the table.
CREATE NONCLUSTERED INDEX {index} ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
