-- Queues whose batches fail: how many attempts in a row, since when, and the last error. Gone with the first success.
CREATE TABLE IF NOT EXISTS {failures} (
    queue text NOT NULL PRIMARY KEY,
    failures integer NOT NULL,
    since timestamptz NOT NULL,
    last_error text NOT NULL
);
