-- Rewrites the table under an exclusive lock.
ALTER TABLE {queue} ALTER COLUMN seq TYPE bigint USING CAST(seq AS bigint);
