-- name: open
-- Writes the row of a new claim. The lease runs on the database's clock. Locks: the new row.
INSERT INTO {claims} (claim_id, queue, owner, generation, messages, bytes, first_row_version, claimed_at, lease_until)
SELECT
    CAST(:claim_id AS uuid), :queue, :owner, 1, CAST(:messages AS integer), CAST(:bytes AS bigint),
    CAST(:first AS bigint),
    clock_timestamp(), clock_timestamp() + CAST(:lease AS bigint) * INTERVAL '1 millisecond'

-- name: fence
-- Ends the claim if it is still this owner's. Any other count than one row means that it was lost. Locks: the claim's
-- row.
DELETE FROM {claims}
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: hold
-- Whether a claim is still its holder's, and stays so until this transaction ends: no process can complete it
-- meanwhile, while leases may be renewed. Locks: the claim's row, FOR KEY SHARE.
SELECT 1 FROM {claims}
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation
FOR KEY SHARE

-- name: renew
-- Touches no row when the claim is no longer this owner's. Locks: the claim's row.
UPDATE {claims}
SET lease_until = clock_timestamp() + CAST(:lease AS bigint) * INTERVAL '1 millisecond'
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: begin
-- Notes that the messages of a claim are being tried from now on, if it is still this owner's. Locks: the claim's row.
UPDATE {claims} SET begun = true
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: fail
-- Counts a failure of a claim's messages and keeps the error, if the claim is still this owner's. Locks: the claim's
-- row.
UPDATE {claims}
SET begun = false, failures = failures + 1, last_error = :error
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation
RETURNING failures

-- name: rest
-- Keeps the error of a claim whose messages failed and now wait for a verdict, uncounted, if the claim is still this
-- owner's: if its holder dies from now on, they are not the cause. Locks: the claim's row.
UPDATE {claims} SET begun = false, last_error = :error
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: isolate
-- Marks a claim whose messages were in work when Spark died, uncounted, if the claim is still this owner's: they are
-- tried alone from now on. Locks: the claim's row.
UPDATE {claims} SET begun = false, isolated = true, last_error = :error
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: release
-- Gives a claim back: without an owner no process can complete it, and the next receiver takes it over first. If
-- the holder is known to have died while it worked, the messages are isolated, or counted if they were. Locks: the
-- claim's row.
UPDATE {claims}
SET
    owner = NULL,
    lease_until = clock_timestamp(),
    begun = false,
    isolated = isolated OR (begun AND CAST(:died AS boolean)),
    failures = failures + CASE WHEN begun AND isolated AND CAST(:died AS boolean) THEN 1 ELSE 0 END,
    last_error = CASE WHEN begun AND CAST(:died AS boolean) THEN owner || ' ended while it worked' ELSE last_error END
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: release_owner
-- Gives back every claim that one owner still holds. If the owner is known to have died while it worked, the messages
-- are isolated, or counted if they were. Locks: the claims of the owner.
UPDATE {claims}
SET
    owner = NULL,
    lease_until = clock_timestamp(),
    begun = false,
    isolated = isolated OR (begun AND CAST(:died AS boolean)),
    failures = failures + CASE WHEN begun AND isolated AND CAST(:died AS boolean) THEN 1 ELSE 0 END,
    last_error = CASE WHEN begun AND CAST(:died AS boolean) THEN owner || ' ended while it worked' ELSE last_error END
WHERE owner = :owner
RETURNING CAST(claim_id AS text), queue, generation, messages, bytes, first_row_version, failures,
    CAST(isolated AS integer)

-- name: adopt
-- Takes over one claim for a new owner: released, lease over, or unchanged since the caller read it, because its holder
-- is dead. The second process that tries waits for the row and finds it changed. A holder that ended without a report
-- while it worked may have been ended by its messages: they are isolated, or counted if they were. Locks: the claim's
-- row.
UPDATE {claims}
SET
    owner = :new_owner,
    generation = generation + 1,
    claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + CAST(:lease AS bigint) * INTERVAL '1 millisecond',
    begun = false,
    isolated = isolated OR begun,
    failures = failures + CASE WHEN begun AND isolated THEN 1 ELSE 0 END,
    last_error = CASE WHEN begun THEN owner || ' ended while it worked' ELSE last_error END
WHERE claim_id = CAST(:claim_id AS uuid)
    AND (owner IS NULL OR lease_until <= clock_timestamp() OR (owner = :owner AND generation = :generation))
RETURNING CAST(claim_id AS text), queue, owner, generation, messages, bytes, first_row_version, failures,
    CAST(isolated AS integer)

-- name: take_over
-- Takes over the oldest claim of a queue whose lease ran out or that was released. The generation fences the former
-- owner off. A holder that ended without a report while it worked may have been ended by its messages: they are
-- isolated, or counted if they were. Locks: the claim's row; rows that others have locked are skipped.
UPDATE {claims}
SET
    owner = :new_owner,
    generation = generation + 1,
    claimed_at = clock_timestamp(),
    lease_until = clock_timestamp() + CAST(:lease AS bigint) * INTERVAL '1 millisecond',
    begun = false,
    isolated = isolated OR begun,
    failures = failures + CASE WHEN begun AND isolated THEN 1 ELSE 0 END,
    last_error = CASE WHEN begun THEN owner || ' ended while it worked' ELSE last_error END
WHERE claim_id = (
    SELECT claim_id
    FROM {claims}
    WHERE queue = :queue AND lease_until <= clock_timestamp()
    ORDER BY first_row_version
    LIMIT 1
    FOR UPDATE SKIP LOCKED
)
RETURNING CAST(claim_id AS text), queue, owner, generation, messages, bytes, first_row_version, failures,
    CAST(isolated AS integer)

-- name: branch
-- Writes the row of a claim that was split off another: same owner, generation and lease; it has not failed yet. Locks:
-- the new row.
INSERT INTO {claims} (
    claim_id, queue, owner, generation, messages, bytes, first_row_version, claimed_at, lease_until, last_error,
    isolated
)
SELECT
    CAST(:new_claim_id AS uuid), queue, owner, generation, CAST(:messages AS integer), CAST(:bytes AS bigint),
    CAST(:first AS bigint),
    claimed_at, lease_until, last_error, isolated
FROM {claims}
WHERE claim_id = CAST(:claim_id AS uuid)

-- name: shrink
-- Sets what is left in a claim after part of it was split off or moved away, if it is still this owner's. What is left
-- has not failed yet. Locks: the claim's row.
UPDATE {claims}
SET messages = CAST(:messages AS integer), bytes = CAST(:bytes AS bigint), first_row_version = CAST(:first AS bigint),
    begun = false, failures = 0
WHERE claim_id = CAST(:claim_id AS uuid) AND owner = :owner AND generation = :generation

-- name: list
-- Every claim of a queue ('' = of all queues), oldest messages first, with the rest of its lease in milliseconds on the
-- database's clock. Locks: none.
SELECT
    CAST(claim_id AS text), queue, owner, generation, messages, bytes, first_row_version,
    CAST(extract(EPOCH FROM lease_until - clock_timestamp()) * 1000 AS bigint),
    CAST(extract(EPOCH FROM clock_timestamp() - claimed_at) * 1000 AS bigint),
    failures, last_error, CAST(isolated AS integer)
FROM {claims}
WHERE CAST(:queue AS text) = '' OR queue = CAST(:queue AS text)
ORDER BY queue, first_row_version

-- name: totals
-- The work in progress on a queue: claims, messages, and how many of the claims have no living owner. Locks: none.
SELECT
    count(*), COALESCE(sum(messages), 0),
    COALESCE(sum(CASE WHEN lease_until <= clock_timestamp() THEN 1 ELSE 0 END), 0)
FROM {claims}
WHERE queue = :queue

-- name: waiting
-- Messages in claims without a holder, by queue: released, or lease over. Locks: none.
SELECT queue, CAST(sum(messages) AS bigint)
FROM {claims}
WHERE owner IS NULL OR lease_until <= clock_timestamp()
GROUP BY queue
