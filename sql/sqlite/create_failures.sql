-- Queues whose batches fail: how many attempts in a row, since when (milliseconds since 1970), and the last error.
-- Gone with the first success.
CREATE TABLE IF NOT EXISTS {failures} (
    Queue TEXT NOT NULL PRIMARY KEY,
    Failures INTEGER NOT NULL,
    Since INTEGER NOT NULL,
    LastError TEXT NOT NULL
);
