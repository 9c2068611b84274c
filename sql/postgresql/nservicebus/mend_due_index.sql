-- As the installer makes it.
CREATE INDEX {index} ON {delayed} (due);
