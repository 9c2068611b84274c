-- The column holds UTC wall-clock time without a zone. The session's zone comes first: it decides how a value without
-- one is read.
SET TIME ZONE 'UTC';
ALTER TABLE {queue} ALTER COLUMN expires TYPE timestamp USING CAST(expires AS timestamptz) AT TIME ZONE 'UTC';
