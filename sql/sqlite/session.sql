-- Run once on every new connection. The write-ahead log lets readers work beside the writer; FULL because a message
-- that was committed must survive a power cut.
PRAGMA journal_mode = WAL;
PRAGMA synchronous = FULL;
