-- name: stage
-- Stages results; the row is repeated for several. Identity values follow the order of the rows. Locks: the new rows.
INSERT INTO {outbox} (claim_id, task, group_number, id, milliseconds, headers, body)
SELECT
    CAST(:claim_id AS uuid), CAST(:task AS text), CAST(:group_number AS integer),
    m.id, m.milliseconds, m.headers, m.body
FROM (
VALUES
(CAST(:id AS uuid), CAST(:milliseconds AS bigint), CAST(:headers AS text), CAST(:body AS bytea))
) AS m (id, milliseconds, headers, body)

-- name: copy
-- As stage, by COPY. Locks: the new rows.
COPY {outbox} (claim_id, task, group_number, id, milliseconds, headers, body) FROM STDIN WITH (FORMAT BINARY)

-- name: reports
-- What tasks reported of the parts that they read, by number. Locks: none.
SELECT group_number, body FROM {outbox} WHERE claim_id = CAST(:claim_id AS uuid) AND task = :task

-- name: abandon
-- Drops what was staged for a claim that its holder gives up. A process that lost the claim drops nothing: the rows may
-- be its next holder's. Locks: the rows it deletes.
DELETE FROM {outbox} AS o
USING {claims} AS c
WHERE o.claim_id = c.claim_id AND c.claim_id = CAST(:claim_id AS uuid) AND c.owner = :owner
    AND c.generation = :generation

-- name: clear
-- Drops everything that any process staged for a claim: it is being completed. Locks: the rows it deletes.
DELETE FROM {outbox} WHERE claim_id = CAST(:claim_id AS uuid)

-- name: sweep
-- Drops what was staged for claims that no longer exist: no process will ask for it. Locks: the rows it deletes.
DELETE FROM {outbox} AS o WHERE NOT EXISTS (SELECT 1 FROM {claims} AS c WHERE c.claim_id = o.claim_id)
