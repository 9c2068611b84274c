-- As the installer makes it.
CREATE INDEX {index} ON {queue} (Expires) WHERE Expires IS NOT NULL;
