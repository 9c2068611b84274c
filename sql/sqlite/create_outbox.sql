-- Results that Spark executors staged, until the claim that they belong to is completed.
CREATE TABLE IF NOT EXISTS {outbox} (
    ClaimId TEXT NOT NULL,
    Task TEXT NOT NULL,
    Destination TEXT NOT NULL,
    Ordinal INTEGER NOT NULL,
    Id TEXT NOT NULL,
    TtlMs INTEGER NOT NULL,
    Headers TEXT NOT NULL,
    Body BLOB,
    PRIMARY KEY (ClaimId, Task, Destination, Ordinal)
);
