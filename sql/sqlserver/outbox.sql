-- name: stage
-- Stages results; the row is repeated for several. Identity values follow the order of the rows. Locks: the new rows.
INSERT INTO {outbox} (ClaimId, Task, GroupNumber, Id, Milliseconds, Headers, Body)
SELECT
    common.ClaimId, common.Task, common.GroupNumber, CAST(v.Id AS uniqueidentifier), v.Milliseconds, v.Headers, v.Body
FROM
    (SELECT CAST(:claim_id AS uniqueidentifier) AS ClaimId, CAST(:task AS nvarchar(100)) AS Task,
        CAST(:group_number AS int) AS GroupNumber) AS common
CROSS JOIN (
VALUES
(:id, :milliseconds, :headers, :body)
) AS v (Id, Milliseconds, Headers, Body)

-- name: reports
-- What tasks reported of the parts that they read, by number. Locks: shared while it reads.
SELECT GroupNumber, Body FROM {outbox} WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Task = :task

-- name: abandon
-- Drops what was staged for a claim that its holder gives up. A process that lost the claim drops nothing: the rows may
-- be its next holder's. Locks: the rows it deletes.
DELETE FROM {outbox}
WHERE ClaimId = (
    SELECT ClaimId FROM {claims}
    WHERE ClaimId = CAST(:claim_id AS uniqueidentifier) AND Owner = :owner AND Generation = :generation
);
SELECT @@ROWCOUNT;

-- name: clear
-- Drops everything that any process staged for a claim: it is being completed. Locks: the rows it deletes.
DELETE FROM {outbox} WHERE ClaimId = CAST(:claim_id AS uniqueidentifier)

-- name: sweep
-- Drops what was staged for claims that no longer exist: no process will ask for it. Locks: the rows it deletes.
DELETE FROM {outbox} WHERE ClaimId NOT IN (SELECT ClaimId FROM {claims});
SELECT @@ROWCOUNT;
