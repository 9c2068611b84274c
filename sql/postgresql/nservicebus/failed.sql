-- name: last
-- The last row version of an error queue now: what fails later has a higher one. Locks: none.
SELECT max(seq) FROM {queue}

-- name: take
-- Deletes chosen messages of an error queue and returns them in order, except for those that another process holds. The
-- row is repeated for several messages. Locks: the rows it deletes; rows that others have locked are skipped.
WITH taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {queue} WHERE seq IN (
VALUES
(CAST(:row_version AS bigint))
        ) FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, seq, headers, body
)
SELECT CAST(id AS text), seq, headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM taken
ORDER BY seq

-- name: drop
-- Deletes chosen messages of an error queue for good, except for those that another process holds. The row is repeated
-- for several messages. Locks: the rows it deletes; rows that others have locked are skipped.
DELETE FROM {queue}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {queue} WHERE seq IN (
VALUES
(CAST(:row_version AS bigint))
    ) FOR UPDATE SKIP LOCKED
))
