-- As receive_packed.sql, a row a message: a driver that takes bytes as they come needs nothing packed, and the server need not
-- store what it deletes away before it is put together. Parameters: most messages, most bytes.
WITH head AS MATERIALIZED (
    SELECT ctid, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
    FROM {queue}
    ORDER BY seq
    LIMIT ?
    FOR UPDATE SKIP LOCKED
),
sized AS (
    SELECT ctid, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM head
)
DELETE FROM {queue}
WHERE ctid = ANY (ARRAY(SELECT ctid FROM sized WHERE before < ?))
RETURNING
    uuid_send(id), seq, convert_to(headers, 'UTF8'), body, COALESCE(expires <= (now() AT TIME ZONE 'UTC'), FALSE)
