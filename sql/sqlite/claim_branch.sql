-- Write the row of a claim that was split off another: same owner, attempt and lease.
-- Parameters: new claim id, messages, bytes, first RowVersion, claim id.
INSERT INTO {claims} (ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil)
SELECT ?, Queue, Owner, Attempt, ?, ?, ?, ClaimedAt, LeaseUntil
FROM {claims}
WHERE ClaimId = ?
