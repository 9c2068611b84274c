-- One row a claim: who holds it, at which attempt, until when (milliseconds since 1970), and how often its messages
-- have failed. Owner is NULL once given back.
CREATE TABLE IF NOT EXISTS {claims} (
    ClaimId TEXT NOT NULL PRIMARY KEY,
    Queue TEXT NOT NULL,
    Owner TEXT,
    Attempt INTEGER NOT NULL,
    Messages INTEGER NOT NULL,
    Bytes INTEGER NOT NULL,
    FirstRowVersion INTEGER NOT NULL,
    ClaimedAt INTEGER NOT NULL,
    LeaseUntil INTEGER NOT NULL,
    Begun INTEGER NOT NULL DEFAULT 0,
    Failures INTEGER NOT NULL DEFAULT 0,
    LastError TEXT
);
CREATE INDEX IF NOT EXISTS {claims_index} ON {claims} (Queue, FirstRowVersion);
