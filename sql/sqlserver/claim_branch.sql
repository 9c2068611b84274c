-- Write the row of a claim that was split off another: same owner, attempt and lease; it has not failed yet.
-- Parameters: new claim id, messages, bytes, first RowVersion, claim id.
INSERT INTO {claims} (ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil, LastError)
SELECT
    CAST(? AS uniqueidentifier), Queue, Owner, Attempt, CAST(? AS int), CAST(? AS bigint), CAST(? AS bigint),
    ClaimedAt, LeaseUntil, LastError
FROM {claims}
WHERE ClaimId = CAST(? AS uniqueidentifier)
