-- The messages of batches in work, moved out of the queue until their claim is completed.
CREATE TABLE IF NOT EXISTS {claimed} (
    ClaimId TEXT NOT NULL,
    Id TEXT NOT NULL,
    Expires TEXT,
    Headers TEXT NOT NULL,
    Body BLOB,
    RowVersion INTEGER NOT NULL,
    PRIMARY KEY (ClaimId, RowVersion)
);
