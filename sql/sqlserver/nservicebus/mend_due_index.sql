-- As the installer makes it.
CREATE NONCLUSTERED INDEX {index} ON {delayed} ([Due]);
