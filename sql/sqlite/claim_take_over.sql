-- Take over the oldest claim of a queue whose lease ran out or that was released. The attempt is what fences the former
-- owner off. Parameters: owner, lease in milliseconds, queue.
UPDATE {claims}
SET
    Owner = ?1,
    Attempt = Attempt + 1,
    ClaimedAt = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?2
WHERE ClaimId = (
    SELECT ClaimId
    FROM {claims}
    WHERE Queue = ?3 AND LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    ORDER BY FirstRowVersion
    LIMIT 1
)
RETURNING ClaimId, Queue, Owner, Attempt, Messages, Bytes, FirstRowVersion
