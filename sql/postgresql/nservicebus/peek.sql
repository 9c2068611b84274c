-- How many messages wait, counted up to a limit and without a lock.
-- A row that another transaction is deleting or has locked is not counted: its xmax is a transaction in progress.
-- (FOR UPDATE SKIP LOCKED would tell the same, but the locks that it takes make receivers skip those rows.)
-- xmax has 32 bits and pg_xact_status wants 64, so the epoch of the current snapshot is put in front of it; an xmax
-- beyond the snapshot belongs to a transaction that began since. A deleter that rolled back leaves its xmax behind:
-- "aborted" counts as waiting.
-- The order makes the planner walk the index on seq, which passes over dead rows; a scan of the heap would not.
WITH horizon AS MATERIALIZED (
    SELECT CAST(CAST(pg_snapshot_xmax(pg_current_snapshot()) AS text) AS bigint) AS next_xid
)
SELECT count(*)
FROM (
    SELECT 1
    FROM {queue} AS q, horizon
    WHERE CASE
        WHEN q.xmax = '0' THEN TRUE
        WHEN CAST(CAST(q.xmax AS text) AS bigint) >= horizon.next_xid % 4294967296 THEN
            horizon.next_xid >= 4294967296
            AND pg_xact_status(CAST(CAST(
                horizon.next_xid - horizon.next_xid % 4294967296 - 4294967296 + CAST(CAST(q.xmax AS text) AS bigint)
                AS text) AS xid8)) IS DISTINCT FROM 'in progress'
        ELSE pg_xact_status(CAST(CAST(
            horizon.next_xid - horizon.next_xid % 4294967296 + CAST(CAST(q.xmax AS text) AS bigint)
            AS text) AS xid8)) IS DISTINCT FROM 'in progress'
    END
    ORDER BY q.seq
    LIMIT ?
) AS waiting
