-- As the installer makes it. Blocks senders while it is built; CREATE INDEX CONCURRENTLY would not, but runs in no
-- transaction.
CREATE INDEX {index} ON {queue} (expires) WHERE expires IS NOT NULL;
