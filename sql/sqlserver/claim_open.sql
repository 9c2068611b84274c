-- Write the claim's row: its lease runs on the database's clock.
-- Parameters: claim id, queue, owner, messages, bytes, first RowVersion, lease in milliseconds.
INSERT INTO {claims} (ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil)
VALUES (
    CAST(? AS uniqueidentifier), ?, ?, 1, ?, ?, ?,
    SYSUTCDATETIME(), DATEADD(millisecond, CAST(? AS int), SYSUTCDATETIME())
)
