-- name: stage
-- Stages one result; the driver runs it once per row. Locks: the database, as every write.
INSERT INTO {outbox} (ClaimId, Task, GroupNumber, Id, Milliseconds, Headers, Body)
VALUES (:claim_id, :task, :group_number, :id, :milliseconds, :headers, :body)

-- name: reports
-- What tasks reported of the parts that they read, by number. Locks: none.
SELECT GroupNumber, Body FROM {outbox} WHERE ClaimId = :claim_id AND Task = :task

-- name: abandon
-- Drops what was staged for a claim that its holder gives up. A process that lost the claim drops nothing: the rows may
-- be its next holder's. Locks: the database, as every write.
DELETE FROM {outbox}
WHERE ClaimId = (SELECT ClaimId FROM {claims} WHERE ClaimId = :claim_id AND Owner = :owner AND Generation = :generation)

-- name: clear
-- Drops everything that any process staged for a claim: it is being completed. Locks: the database, as every write.
DELETE FROM {outbox} WHERE ClaimId = :claim_id

-- name: sweep
-- Drops what was staged for claims that no longer exist: no process will ask for it. Locks: the database, as every
-- write.
DELETE FROM {outbox} WHERE ClaimId NOT IN (SELECT ClaimId FROM {claims})
