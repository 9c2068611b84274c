-- name: open
-- Runs once on every new connection. The write-ahead log lets readers work beside the writer. FULL, because a committed
-- message must survive a power cut. Locks: the database for a moment, when the log is switched on for the first time.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
