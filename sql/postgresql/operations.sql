-- name: slot_gate
-- Lets one owner at a time take slots of a queue: two that count at once would both find the last slot free. Renewing,
-- releasing and claiming do not wait for it. Locks: slot 0 of the queue, until the transaction ends.
INSERT INTO {slots} (queue, slot, owner, lease_until, taken_at, process)
VALUES (:queue, 0, '', clock_timestamp(), clock_timestamp(), '')
ON CONFLICT (queue, slot) DO UPDATE SET lease_until = excluded.lease_until

-- name: slot_expire
-- Frees the slots of a queue whose lease ran out. An owner that renews at this moment keeps its slot: the row is
-- checked again once its lock is free. Locks: the rows it deletes.
DELETE FROM {slots} WHERE queue = :queue AND slot > 0 AND lease_until <= clock_timestamp()

-- name: slot_occupied
-- The slots of a queue that are not free, also those above today's limit. Their leases do not matter: an owner whose
-- lease ran out after the last slots were freed can still renew it. Locks: none.
SELECT slot, owner FROM {slots} WHERE queue = :queue AND slot > 0

-- name: slot_take
-- Occupies one slot. Locks: the new row.
INSERT INTO {slots} (queue, slot, owner, lease_until, taken_at, process)
SELECT
    CAST(:queue AS text), CAST(:slot AS integer), CAST(:owner AS text),
    clock_timestamp() + CAST(:lease AS bigint) * INTERVAL '1 millisecond', clock_timestamp(), CAST(:process AS text)

-- name: slot_renew
-- Holds the slots of an owner for longer, in the process that works now. Touches fewer rows than the owner expects if
-- it was late and they were freed.
-- Locks: the owner's rows.
UPDATE {slots}
SET lease_until = clock_timestamp() + CAST(:lease AS bigint) * INTERVAL '1 millisecond', process = :process
WHERE queue = :queue AND slot > 0 AND owner = :owner

-- name: slot_end
-- Notes on the slots of an owner why it takes no further batch; the first reason stays. The owner writes it when it
-- stops, or another process to make it stop. Locks: the owner's rows.
UPDATE {slots}
SET ending = :reason
WHERE queue = :queue AND slot > 0 AND owner = :owner AND ending IS NULL

-- name: slot_release
-- Gives back the slots of an owner, except for the first few that it keeps. Locks: the rows it deletes.
DELETE FROM {slots} AS given_back
USING (
    SELECT queue, slot, owner, row_number() OVER (ORDER BY slot) AS number
    FROM {slots}
    WHERE queue = :queue AND slot > 0 AND owner = :owner
) AS held
WHERE given_back.queue = held.queue
    AND given_back.slot = held.slot
    AND given_back.owner = held.owner
    AND held.number > CAST(:keep AS integer)

-- name: slot_release_owner
-- Gives back every slot that one owner still has, in all queues. Locks: the rows it deletes.
DELETE FROM {slots} WHERE owner = :owner AND slot > 0

-- name: slot_list
-- How many slots each owner has in a queue ('' = in all queues), with the milliseconds that are left of its
-- lease and those since it took the first slot, on the database's clock, why it takes no further batch, if it
-- stopped, and its process. A slot whose lease ran out counts only if expired = 1. Locks: none.
SELECT
    queue, owner, CAST(count(*) AS integer),
    CAST(extract(EPOCH FROM min(lease_until) - clock_timestamp()) * 1000 AS bigint),
    CAST(extract(EPOCH FROM clock_timestamp() - min(taken_at)) * 1000 AS bigint),
    max(ending), max(process)
FROM {slots}
WHERE slot > 0
    AND (lease_until > clock_timestamp() OR CAST(:expired AS integer) = 1)
    AND (CAST(:queue AS text) = '' OR queue = CAST(:queue AS text))
GROUP BY queue, owner
ORDER BY queue, owner

-- name: pause_add
-- Pauses something, unless it is paused already: the first reason stays. Locks: the new row.
INSERT INTO {pauses} (name, paused_at, paused_by, reason)
SELECT CAST(:name AS text), clock_timestamp(), CAST(:by AS text), CAST(:reason AS text)
ON CONFLICT (name) DO NOTHING

-- name: pause_remove
-- Resumes what was paused; touches no row when it was not. Locks: the row.
DELETE FROM {pauses} WHERE name = :name

-- name: pause_list
-- Everything that is paused, with the milliseconds since then on the database's clock. Locks: none.
SELECT name, CAST(extract(EPOCH FROM clock_timestamp() - paused_at) * 1000 AS bigint), paused_by, reason
FROM {pauses}
ORDER BY name

-- name: failure_record
-- Counts one more failed attempt in a row and returns how many there are. Locks: the queue's row.
INSERT INTO {failures} AS known (queue, failures, since, last_error)
VALUES (:queue, 1, clock_timestamp(), :error)
ON CONFLICT (queue) DO UPDATE
SET
    failures = known.failures + 1,
    since = CASE WHEN known.failures = 0 THEN excluded.since ELSE known.since END,
    last_error = excluded.last_error
RETURNING failures

-- name: failure_clear
-- Forgets the failures of a queue that works again. Locks: the queue's row.
UPDATE {failures} SET failures = 0, last_error = '' WHERE queue = :queue

-- name: failure_list
-- Queues whose batches fail, with the milliseconds since the first failure on the database's clock. Locks: none.
SELECT queue, failures, CAST(extract(EPOCH FROM clock_timestamp() - since) * 1000 AS bigint), last_error
FROM {failures}
WHERE failures > 0
ORDER BY queue

-- name: proof_note
-- Keeps which code and Spark last processed a message of a queue; touches no row if it is known. Locks: the queue's
-- row.
INSERT INTO {failures} AS known (queue, failures, since, last_error, proof)
VALUES (:queue, 0, clock_timestamp(), '', :proof)
ON CONFLICT (queue) DO UPDATE SET proof = excluded.proof WHERE known.proof IS DISTINCT FROM excluded.proof

-- name: proof_find
-- Which code and Spark last processed a message of a queue. Locks: none.
SELECT proof FROM {failures} WHERE queue = :queue
