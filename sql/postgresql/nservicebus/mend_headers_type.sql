-- Text keeps the JSON as the sender wrote it.
ALTER TABLE {queue} ALTER COLUMN headers TYPE text USING CAST(headers AS text);
