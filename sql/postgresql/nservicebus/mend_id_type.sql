-- Rewrites the table under an exclusive lock.
ALTER TABLE {queue} ALTER COLUMN id TYPE uuid USING CAST(CAST(id AS text) AS uuid);
