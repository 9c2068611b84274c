-- name: slot_gate
-- Lets one owner at a time take slots of a queue: two that count at once would both find the last slot free. Renewing,
-- releasing and claiming do not wait for it. Locks: slot 0 of the queue, until the transaction ends.
DECLARE @queue nvarchar(400) = :queue;
UPDATE {slots} WITH (UPDLOCK, HOLDLOCK)
SET LeaseUntil = SYSUTCDATETIME()
WHERE Queue = @queue AND Slot = 0;
IF @@ROWCOUNT = 0
    INSERT INTO {slots} (Queue, Slot, Owner, LeaseUntil, TakenAt, Process)
    VALUES (@queue, 0, N'', SYSUTCDATETIME(), SYSUTCDATETIME(), N'');

-- name: slot_expire
-- Frees the slots of a queue whose lease ran out. An owner that renews at this moment keeps its slot: the row is
-- checked again once its lock is free. Locks: the rows it deletes.
DELETE FROM {slots} WHERE Queue = :queue AND Slot > 0 AND LeaseUntil <= SYSUTCDATETIME()

-- name: slot_occupied
-- The slots of a queue that are not free, also those above today's limit. Their leases do not matter: an owner whose
-- lease ran out after the last slots were freed can still renew it. Locks: shared while it reads.
SELECT Slot, Owner FROM {slots} WHERE Queue = :queue AND Slot > 0

-- name: slot_take
-- Occupies one slot. Locks: the new row.
INSERT INTO {slots} (Queue, Slot, Owner, LeaseUntil, TakenAt, Process)
VALUES (
    :queue, :slot, :owner, DATEADD(millisecond, CAST(:lease AS int), SYSUTCDATETIME()), SYSUTCDATETIME(), :process
)

-- name: slot_renew
-- Holds the slots of an owner for longer, in the process that works now. Touches fewer rows than the owner expects if
-- it was late and they were freed.
-- Locks: the owner's rows.
UPDATE {slots}
SET LeaseUntil = DATEADD(millisecond, CAST(:lease AS int), SYSUTCDATETIME()), Process = :process
WHERE Queue = :queue AND Slot > 0 AND Owner = :owner;
SELECT @@ROWCOUNT;

-- name: slot_end
-- Notes on the slots of an owner why it takes no further batch; the first reason stays. The owner writes it when it
-- stops, or another process to make it stop. Locks: the owner's rows.
UPDATE {slots}
SET Ending = :reason
WHERE Queue = :queue AND Slot > 0 AND Owner = :owner AND Ending IS NULL;
SELECT @@ROWCOUNT;

-- name: slot_release
-- Gives back the slots of an owner, except for the first few that it keeps. Locks: the rows it deletes.
DECLARE @queue nvarchar(400) = :queue, @owner nvarchar(200) = :owner, @keep int = :keep;
DELETE FROM {slots}
WHERE Queue = @queue AND Slot > 0 AND Owner = @owner
    AND Slot NOT IN (
        SELECT TOP (@keep) Slot FROM {slots} WHERE Queue = @queue AND Slot > 0 AND Owner = @owner ORDER BY Slot
    );
SELECT @@ROWCOUNT;

-- name: slot_release_owner
-- Gives back every slot that one owner still has, in all queues. Locks: the rows it deletes.
DELETE FROM {slots} WHERE Owner = :owner AND Slot > 0;
SELECT @@ROWCOUNT;

-- name: slot_list
-- How many slots each owner has in a queue ('' = in all queues), with the milliseconds that are left of its
-- lease and those since it took the first slot, on the database's clock, why it takes no further batch, if it
-- stopped, and its process. A slot whose lease ran out counts only if expired = 1. NOLOCK, because no process must
-- wait for a read; a result that is slightly out of date costs a run that finds no slot at most. Locks: none.
SELECT
    Queue, Owner, COUNT(*), DATEDIFF_BIG(millisecond, SYSUTCDATETIME(), MIN(LeaseUntil)),
    DATEDIFF_BIG(millisecond, MIN(TakenAt), SYSUTCDATETIME()), MAX(Ending), MAX(Process)
FROM {slots} WITH (NOLOCK)
WHERE Slot > 0 AND (LeaseUntil > SYSUTCDATETIME() OR :expired = 1) AND (:queue = N'' OR Queue = :queue)
GROUP BY Queue, Owner
ORDER BY Queue, Owner

-- name: pause_add
-- Pauses something, unless it is paused already: the first reason stays. The range lock keeps two processes from
-- inserting at once. Locks: the key range of the name.
DECLARE @name nvarchar(200) = :name, @by nvarchar(200) = :by, @reason nvarchar(1000) = :reason;
INSERT INTO {pauses} (Name, PausedAt, PausedBy, Reason)
SELECT @name, SYSUTCDATETIME(), @by, @reason
WHERE NOT EXISTS (SELECT 1 FROM {pauses} WITH (UPDLOCK, HOLDLOCK) WHERE Name = @name);
SELECT @@ROWCOUNT;

-- name: pause_remove
-- Resumes what was paused; touches no row when it was not. Locks: the row.
DELETE FROM {pauses} WHERE Name = :name;
SELECT @@ROWCOUNT;

-- name: pause_list
-- Everything that is paused, with the milliseconds since then on the database's clock. Locks: shared while it reads.
SELECT Name, DATEDIFF_BIG(millisecond, PausedAt, SYSUTCDATETIME()), PausedBy, Reason
FROM {pauses}
ORDER BY Name

-- name: failure_record
-- Counts one more failed attempt in a row and returns how many there are. The range lock keeps two processes from
-- inserting at once. Locks: the key range of the queue.
DECLARE @queue nvarchar(400) = :queue, @error nvarchar(2000) = :error;
UPDATE {failures} WITH (UPDLOCK, HOLDLOCK)
SET
    Failures = Failures + 1,
    Since = CASE WHEN Failures = 0 THEN SYSUTCDATETIME() ELSE Since END,
    LastError = @error
WHERE Queue = @queue;
IF @@ROWCOUNT = 0
    INSERT INTO {failures} (Queue, Failures, Since, LastError) VALUES (@queue, 1, SYSUTCDATETIME(), @error);
SELECT Failures FROM {failures} WHERE Queue = @queue;

-- name: failure_clear
-- Forgets the failures of a queue that works again. Locks: the queue's row.
UPDATE {failures} SET Failures = 0, LastError = N'' WHERE Queue = :queue;
SELECT @@ROWCOUNT;

-- name: failure_list
-- Queues whose batches fail, with the milliseconds since the first failure on the database's clock. Locks: shared while
-- it reads.
SELECT Queue, Failures, DATEDIFF_BIG(millisecond, Since, SYSUTCDATETIME()), LastError
FROM {failures}
WHERE Failures > 0
ORDER BY Queue

-- name: proof_note
-- Keeps which code and Spark last processed a message of a queue. The range lock keeps two processes from inserting at
-- once. Locks: the key range of the queue.
DECLARE @queue nvarchar(400) = :queue, @proof nvarchar(100) = :proof;
UPDATE {failures} WITH (UPDLOCK, HOLDLOCK) SET Proof = @proof WHERE Queue = @queue;
IF @@ROWCOUNT = 0
    INSERT INTO {failures} (Queue, Failures, Since, LastError, Proof) VALUES (@queue, 0, SYSUTCDATETIME(), N'', @proof);

-- name: proof_find
-- Which code and Spark last processed a message of a queue. Locks: shared while it reads.
SELECT Proof FROM {failures} WHERE Queue = :queue
