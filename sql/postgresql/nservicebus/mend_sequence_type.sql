-- The column rewrites the table under an exclusive lock: do it while few messages wait. Peers do not notice.
ALTER TABLE {queue} ALTER COLUMN seq TYPE bigint;
ALTER SEQUENCE {sequence} AS bigint NO MAXVALUE;
