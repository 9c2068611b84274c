-- name: slot_gate
-- Lets one owner at a time take slots of a queue; here a transaction that writes is alone anyway. Locks: the database,
-- as every write.
INSERT INTO {slots} (Queue, Slot, Owner, LeaseUntil, TakenAt, Process)
VALUES (:queue, 0, '', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), 0, '')
ON CONFLICT (Queue, Slot) DO UPDATE SET LeaseUntil = excluded.LeaseUntil

-- name: slot_expire
-- Frees the slots of a queue whose lease ran out. Locks: the database, as every write.
DELETE FROM {slots}
WHERE Queue = :queue AND Slot > 0 AND LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)

-- name: slot_occupied
-- The slots of a queue that are not free, also those above today's limit. Their leases do not matter: an owner whose
-- lease ran out after the last slots were freed can still renew it. Locks: none.
SELECT Slot, Owner FROM {slots} WHERE Queue = :queue AND Slot > 0

-- name: slot_take
-- Occupies one slot. Locks: the database, as every write.
INSERT INTO {slots} (Queue, Slot, Owner, LeaseUntil, TakenAt, Process)
VALUES (
    :queue, :slot, :owner, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :lease,
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), :process
)

-- name: slot_renew
-- Holds the slots of an owner for longer, in the process that works now. Touches fewer rows than the owner expects if
-- it was late and they were freed.
-- Locks: the database, as every write.
UPDATE {slots}
SET LeaseUntil = CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + :lease, Process = :process
WHERE Queue = :queue AND Slot > 0 AND Owner = :owner

-- name: slot_end
-- Notes on the slots of an owner why it takes no further batch; the first reason stays. The owner writes it when it
-- stops, or another process to make it stop. Locks: the database, as every write.
UPDATE {slots}
SET Ending = :reason
WHERE Queue = :queue AND Slot > 0 AND Owner = :owner AND Ending IS NULL

-- name: slot_release
-- Gives back the slots of an owner, except for the first few that it keeps. Locks: the database, as every write.
DELETE FROM {slots}
WHERE Queue = :queue AND Slot > 0 AND Owner = :owner
    AND Slot NOT IN (
        SELECT Slot FROM {slots} WHERE Queue = :queue AND Slot > 0 AND Owner = :owner ORDER BY Slot LIMIT :keep
    )

-- name: slot_release_owner
-- Gives back every slot that one owner still has, in all queues. Locks: the database, as every write.
DELETE FROM {slots} WHERE Owner = :owner AND Slot > 0

-- name: slot_list
-- How many slots each owner has in a queue ('' = in all queues), with the milliseconds that are left of its
-- lease and those since it took the first slot, on the database's clock, why it takes no further batch, if it
-- stopped, and its process. A slot whose lease ran out counts only if expired = 1. Locks: none.
SELECT
    Queue, Owner, count(*), min(LeaseUntil) - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - min(TakenAt), max(Ending),
    max(Process)
FROM {slots}
WHERE Slot > 0
    AND (LeaseUntil > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) OR :expired = 1)
    AND (:queue = '' OR Queue = :queue)
GROUP BY Queue, Owner
ORDER BY Queue, Owner

-- name: pause_add
-- Pauses something, unless it is paused already: the first reason stays. Locks: the database, as every write.
INSERT INTO {pauses} (Name, PausedAt, PausedBy, Reason)
VALUES (:name, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), :by, :reason)
ON CONFLICT (Name) DO NOTHING

-- name: pause_remove
-- Resumes what was paused; touches no row when it was not. Locks: the database, as every write.
DELETE FROM {pauses} WHERE Name = :name

-- name: pause_list
-- Everything that is paused, with the milliseconds since then on the database's clock. Locks: none.
SELECT Name, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - PausedAt, PausedBy, Reason
FROM {pauses}
ORDER BY Name

-- name: failure_record
-- Counts one more failed attempt in a row and returns how many there are. Locks: the database, as every write.
INSERT INTO {failures} (Queue, Failures, Since, LastError)
VALUES (:queue, 1, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), :error)
ON CONFLICT (Queue) DO UPDATE
SET
    Failures = Failures + 1,
    Since = CASE WHEN Failures = 0 THEN excluded.Since ELSE Since END,
    LastError = excluded.LastError
RETURNING Failures

-- name: failure_clear
-- Forgets the failures of a queue that works again. Locks: the database, as every write.
UPDATE {failures} SET Failures = 0, LastError = '' WHERE Queue = :queue

-- name: failure_list
-- Queues whose batches fail, with the milliseconds since the first failure on the database's clock. Locks: none.
SELECT Queue, Failures, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - Since, LastError
FROM {failures}
WHERE Failures > 0
ORDER BY Queue

-- name: proof_note
-- Keeps which code and Spark last processed a message of a queue; touches no row if it is known. Locks: the database,
-- as every write.
INSERT INTO {failures} (Queue, Failures, Since, LastError, Proof)
VALUES (:queue, 0, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), '', :proof)
ON CONFLICT (Queue) DO UPDATE SET Proof = excluded.Proof WHERE Proof IS NOT excluded.Proof

-- name: proof_find
-- Which code and Spark last processed a message of a queue. Locks: none.
SELECT Proof FROM {failures} WHERE Queue = :queue
