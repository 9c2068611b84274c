-- Results that Spark executors staged, until the claim that they belong to is completed: one row a message, numbered as
-- they were staged, and one row with the manifest of each job.
CREATE TABLE IF NOT EXISTS {outbox} (
    Ordinal INTEGER PRIMARY KEY,
    ClaimId TEXT NOT NULL,
    Task TEXT NOT NULL,
    Pile INTEGER NOT NULL,
    Id TEXT NOT NULL,
    Milliseconds INTEGER NOT NULL,
    Headers TEXT NOT NULL,
    Body BLOB
);
CREATE INDEX IF NOT EXISTS {outbox_index} ON {outbox} (ClaimId, Task, Pile);
