-- As receive_packed.sql, in the binary format of COPY: a row a message, which neither the server nor the driver makes values of.
-- Parameters, which COPY takes as literals: most messages, most bytes.
COPY (
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
        id, CAST(seq AS bigint), COALESCE(expires <= (now() AT TIME ZONE 'UTC'), FALSE), convert_to(headers, 'UTF8'), body
) TO STDOUT WITH (FORMAT BINARY)
