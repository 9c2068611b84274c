-- Write the claim's row: its lease runs on the database's clock (milliseconds since 1970).
-- Parameters: claim id, queue, owner, messages, bytes, first RowVersion, lease in milliseconds.
INSERT INTO {claims} (ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil)
SELECT
    ?1, ?2, ?3, 1, ?4, ?5, ?6,
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?7
