-- name: open
-- Writes the row of a new claim. The lease runs on the database's clock. Times are milliseconds since 1970. Locks: the
-- database, as every write.
INSERT INTO {claims} (ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil)
SELECT
    :claim_id, :queue, :owner, 1, :messages, :bytes, :first,
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :lease

-- name: fence
-- Ends the claim if it is still this owner's. Any other count than one row means that it was lost. Locks: the database,
-- as every write.
DELETE FROM {claims}
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: hold
-- Whether a claim is still its holder's. There is one writer at a time: no process can complete the claim before this
-- transaction ends. Locks: none of its own.
SELECT 1 FROM {claims} WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: renew
-- Touches no row when the claim is no longer this owner's. Locks: the database, as every write.
UPDATE {claims}
SET LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :lease
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: begin
-- Notes that the messages of a claim are being tried from now on, if it is still this owner's. Locks: the database, as
-- every write.
UPDATE {claims} SET Begun = 1 WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: fail
-- Counts a failure of a claim's messages and keeps the error, if the claim is still this owner's. Locks: the database,
-- as every write.
UPDATE {claims}
SET Begun = 0, Failures = Failures + 1, LastError = :error
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation
RETURNING Failures

-- name: rest
-- Keeps the error of a claim whose messages failed and now wait for a verdict, uncounted, if the claim is still this
-- owner's: if its holder dies from now on, they are not the cause. Locks: the database, as every write.
UPDATE {claims} SET Begun = 0, LastError = :error
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: isolate
-- Marks a claim whose messages were in work when Spark died, uncounted, if the claim is still this owner's: they are
-- tried alone from now on. Locks: the database, as every write.
UPDATE {claims} SET Begun = 0, Isolated = 1, LastError = :error
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: release
-- Gives a claim back: without an owner no process can complete it, and the next receiver takes it over first. If
-- the holder is known to have died while it worked, the messages are isolated, or counted if they were. Locks: the
-- database, as every write.
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    Begun = 0,
    Isolated = max(Isolated, Begun * :died),
    Failures = Failures + Begun * Isolated * :died,
    LastError = CASE WHEN Begun * :died THEN Owner || ' ended while it worked' ELSE LastError END
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: release_owner
-- Gives back every claim that one owner still holds. If the owner is known to have died while it worked, the messages
-- are isolated, or counted if they were. Locks: the database, as every write.
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    Begun = 0,
    Isolated = max(Isolated, Begun * :died),
    Failures = Failures + Begun * Isolated * :died,
    LastError = CASE WHEN Begun * :died THEN Owner || ' ended while it worked' ELSE LastError END
WHERE Owner = :owner
RETURNING ClaimId, Queue, Generation, Messages, Bytes, FirstRowVersion, Failures, Isolated

-- name: adopt
-- Takes over one claim for a new owner: released, lease over, or unchanged since the caller read it, because its holder
-- is dead. A holder that ended without a report while it worked may have been ended by its messages: they are isolated,
-- or counted if they were. Locks: the database, as every write.
UPDATE {claims}
SET
    Owner = :new_owner,
    Generation = Generation + 1,
    ClaimedAt = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :lease,
    Begun = 0,
    Isolated = max(Isolated, Begun),
    Failures = Failures + Begun * Isolated,
    LastError = CASE WHEN Begun THEN Owner || ' ended while it worked' ELSE LastError END
WHERE ClaimId = :claim_id
    AND (
        Owner IS NULL
        OR LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
        OR (Owner = :owner AND Generation = :generation)
    )
RETURNING ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion, Failures, Isolated

-- name: take_over
-- Takes over the oldest claim of a queue whose lease ran out or that was released. The generation fences the former
-- owner off. A holder that ended without a report while it worked may have been ended by its messages: they are
-- isolated, or counted if they were. Locks: the database, as every write.
UPDATE {claims}
SET
    Owner = :new_owner,
    Generation = Generation + 1,
    ClaimedAt = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :lease,
    Begun = 0,
    Isolated = max(Isolated, Begun),
    Failures = Failures + Begun * Isolated,
    LastError = CASE WHEN Begun THEN Owner || ' ended while it worked' ELSE LastError END
WHERE ClaimId = (
    SELECT ClaimId
    FROM {claims}
    WHERE Queue = :queue AND LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    ORDER BY FirstRowVersion
    LIMIT 1
)
RETURNING ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion, Failures, Isolated

-- name: branch
-- Writes the row of a claim that was split off another: same owner, generation and lease; it has not failed yet. Locks:
-- the database, as every write.
INSERT INTO {claims} (ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil,
    LastError, Isolated)
SELECT :new_claim_id, Queue, Owner, Generation, :messages, :bytes, :first, ClaimedAt, LeaseUntil, LastError, Isolated
FROM {claims}
WHERE ClaimId = :claim_id

-- name: shrink
-- Sets what is left in a claim after part of it was split off or moved away, if it is still this owner's. What is left
-- has not failed yet. Locks: the database, as every write.
UPDATE {claims}
SET Messages = :messages, Bytes = :bytes, FirstRowVersion = :first, Begun = 0, Failures = 0
WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation

-- name: list
-- Every claim of a queue ('' = of all queues), oldest messages first, with the rest of its lease in milliseconds on the
-- database's clock. Locks: none.
SELECT
    ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion,
    LeaseUntil - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - ClaimedAt,
    Failures, LastError, Isolated
FROM {claims}
WHERE :queue = '' OR Queue = :queue
ORDER BY Queue, FirstRowVersion

-- name: totals
-- The work in progress on a queue: claims, messages, and how many of the claims have no living owner. Locks: none.
SELECT
    count(*), COALESCE(sum(Messages), 0),
    COALESCE(sum(LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 0)
FROM {claims}
WHERE Queue = :queue

-- name: waiting
-- Messages in claims without a holder, by queue: released, or lease over. A plain read beside the writer. Locks: none.
SELECT Queue, sum(Messages)
FROM {claims}
WHERE Owner IS NULL OR LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
GROUP BY Queue
