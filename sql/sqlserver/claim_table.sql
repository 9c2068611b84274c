-- name: open
-- Writes the row of a new claim. The lease runs on the database's clock. Locks: the new row.
INSERT INTO {claims} (ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil)
VALUES (
    CAST(:claim_id AS uniqueidentifier), :queue, :owner, 1, :messages, :bytes, :first,
    SYSUTCDATETIME(), DATEADD(millisecond, CAST(:lease AS int), SYSUTCDATETIME())
)

-- name: fence
-- Ends the claim if it is still this owner's. Any other count than one row means that it was lost. Locks: the claim's
-- row.
DELETE FROM {claims}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: hold
-- Whether a claim is still its holder's, and stays so until this transaction ends: the row is locked against changes.
-- Locks: the claim's row, shared, until the transaction ends.
SELECT 1
FROM {claims} WITH (REPEATABLEREAD, ROWLOCK)
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation

-- name: renew
-- Touches no row when the claim is no longer this owner's. Locks: the claim's row.
UPDATE {claims}
SET LeaseUntil = DATEADD(millisecond, CAST(:lease AS int), SYSUTCDATETIME())
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: begin
-- Notes that the messages of a claim are being tried from now on, if it is still this owner's. Locks: the claim's row.
UPDATE {claims} SET Begun = 1
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: fail
-- Counts a failure of a claim's messages and keeps the error, if the claim is still this owner's. Locks: the claim's
-- row.
UPDATE {claims}
SET Begun = 0, Failures = Failures + 1, LastError = :error
OUTPUT inserted.Failures
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;

-- name: rest
-- Keeps the error of a claim whose messages failed and now wait for a verdict, uncounted, if the claim is still this
-- owner's: if its holder dies from now on, they are not the cause. Locks: the claim's row.
UPDATE {claims} SET Begun = 0, LastError = :error
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: isolate
-- Marks a claim whose messages were in work when Spark died, uncounted, if the claim is still this owner's: they are
-- tried alone from now on. Locks: the claim's row.
UPDATE {claims} SET Begun = 0, Isolated = 1, LastError = :error
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: release
-- Gives a claim back: without an owner no process can complete it, and the next receiver takes it over first. If
-- the holder is known to have died while it worked, the messages are isolated, or counted if they were. Locks: the
-- claim's row.
DECLARE @died bit = :died;
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = SYSUTCDATETIME(),
    Begun = 0,
    Isolated = CASE WHEN Begun = 1 AND @died = 1 THEN 1 ELSE Isolated END,
    Failures = Failures + CASE WHEN Begun = 1 AND Isolated = 1 AND @died = 1 THEN 1 ELSE 0 END,
    LastError = CASE WHEN Begun = 1 AND @died = 1 THEN Owner + N' ended while it worked' ELSE LastError END
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: release_owner
-- Gives back every claim that one owner still holds. If the owner is known to have died while it worked, the messages
-- are isolated, or counted if they were. Claims are found without a lock and then checked again one by one: a scan
-- would wait for every completion that is in progress. Locks: the claims of the owner.
DECLARE @died bit = :died, @owner nvarchar(200) = :owner;
UPDATE {claims}
SET
    Owner = NULL,
    LeaseUntil = SYSUTCDATETIME(),
    Begun = 0,
    Isolated = CASE WHEN Begun = 1 AND @died = 1 THEN 1 ELSE Isolated END,
    Failures = Failures + CASE WHEN Begun = 1 AND Isolated = 1 AND @died = 1 THEN 1 ELSE 0 END,
    LastError = CASE WHEN Begun = 1 AND @died = 1 THEN Owner + N' ended while it worked' ELSE LastError END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Generation, inserted.Messages, inserted.Bytes, inserted.FirstRowVersion,
    inserted.Failures, inserted.Isolated
WHERE ClaimId IN (SELECT ClaimId FROM {claims} WITH (NOLOCK) WHERE Owner = @owner) AND Owner = @owner;

-- name: adopt
-- Takes over one claim for a new owner: released, lease over, or unchanged since the caller read it, because its holder
-- is dead. The second process that tries waits for the row and finds it changed. A holder that ended without a report
-- while it worked may have been ended by its messages: they are isolated, or counted if they were. Locks: the claim's
-- row.
DECLARE @owner nvarchar(200) = :new_owner, @lease int = :lease;
UPDATE {claims}
SET
    Owner = @owner,
    Generation = Generation + 1,
    ClaimedAt = SYSUTCDATETIME(),
    LeaseUntil = DATEADD(millisecond, @lease, SYSUTCDATETIME()),
    Begun = 0,
    Isolated = CASE WHEN Begun = 1 THEN 1 ELSE Isolated END,
    Failures = Failures + CASE WHEN Begun = 1 AND Isolated = 1 THEN 1 ELSE 0 END,
    LastError = CASE WHEN Begun = 1 THEN Owner + N' ended while it worked' ELSE LastError END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Generation, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion, inserted.Failures, inserted.Isolated
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)
    AND (Owner IS NULL OR LeaseUntil <= SYSUTCDATETIME() OR (Owner = :owner AND Generation = :generation));

-- name: take_over
-- Takes over the oldest claim of a queue whose lease ran out or that was released. The generation fences the former
-- owner off. A holder that ended without a report while it worked may have been ended by its messages: they are
-- isolated, or counted if they were. Locks: the claim's row; rows that others have locked are skipped.
DECLARE @owner nvarchar(200) = :new_owner, @lease int = :lease, @oldest uniqueidentifier;
SELECT TOP (1) @oldest = ClaimId
FROM {claims} WITH (UPDLOCK, READPAST, ROWLOCK)
WHERE Queue = :queue AND LeaseUntil <= SYSUTCDATETIME()
ORDER BY FirstRowVersion;
UPDATE {claims}
SET
    Owner = @owner,
    Generation = Generation + 1,
    ClaimedAt = SYSUTCDATETIME(),
    LeaseUntil = DATEADD(millisecond, @lease, SYSUTCDATETIME()),
    Begun = 0,
    Isolated = CASE WHEN Begun = 1 THEN 1 ELSE Isolated END,
    Failures = Failures + CASE WHEN Begun = 1 AND Isolated = 1 THEN 1 ELSE 0 END,
    LastError = CASE WHEN Begun = 1 THEN Owner + N' ended while it worked' ELSE LastError END
OUTPUT
    inserted.ClaimId, inserted.Queue, inserted.Owner, inserted.Generation, inserted.Messages, inserted.Bytes,
    inserted.FirstRowVersion, inserted.Failures, inserted.Isolated
WHERE ClaimId = @oldest;

-- name: branch
-- Writes the row of a claim that was split off another: same owner, generation and lease; it has not failed yet. Locks:
-- the new row.
INSERT INTO {claims} (ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion, ClaimedAt, LeaseUntil,
    LastError, Isolated)
SELECT
    CAST(:new_claim_id AS uniqueidentifier), Queue, Owner, Generation, CAST(:messages AS int), CAST(:bytes AS bigint),
    CAST(:first AS bigint),
    ClaimedAt, LeaseUntil, LastError, Isolated
FROM {claims}
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)

-- name: shrink
-- Sets what is left in a claim after part of it was split off or moved away, if it is still this owner's. What is left
-- has not failed yet. Locks: the claim's row.
UPDATE {claims}
SET Messages = :messages, Bytes = :bytes, FirstRowVersion = :first, Begun = 0, Failures = 0
WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation;
SELECT @@ROWCOUNT;

-- name: list
-- Every claim of a queue ('' = of all queues), oldest messages first, with the rest of its lease in milliseconds on the
-- database's clock. Locks: shared while it reads.
SELECT
    ClaimId, Queue, Owner, Generation, Messages, Bytes, FirstRowVersion,
    DATEDIFF_BIG(millisecond, SYSUTCDATETIME(), LeaseUntil),
    DATEDIFF_BIG(millisecond, ClaimedAt, SYSUTCDATETIME()),
    Failures, LastError, Isolated
FROM {claims}
WHERE :queue = N'' OR Queue = :queue
ORDER BY Queue, FirstRowVersion

-- name: totals
-- The work in progress on a queue: claims, messages, and how many of the claims have no living owner. Locks: shared
-- while it reads.
SELECT
    COUNT(*), ISNULL(SUM(Messages), 0),
    ISNULL(SUM(CASE WHEN LeaseUntil <= SYSUTCDATETIME() THEN 1 ELSE 0 END), 0)
FROM {claims}
WHERE Queue = :queue

-- name: waiting
-- Messages in claims without a holder, by queue: released, or lease over. NOLOCK, because a completion may hold its row
-- for long, and claimers must not wait for a read; a result that is slightly out of date costs an empty claim at most.
-- Locks: none.
SELECT Queue, CAST(SUM(CAST(Messages AS bigint)) AS bigint)
FROM {claims} WITH (NOLOCK)
WHERE Owner IS NULL OR LeaseUntil <= SYSUTCDATETIME()
GROUP BY Queue
