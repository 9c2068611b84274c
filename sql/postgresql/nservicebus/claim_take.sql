-- Claim: move the oldest messages that nobody else holds into the queue's .Claimed table, in one statement.
-- Bounded by messages and by bytes (the first message is always taken, or one large message would block the queue);
-- octet_length of a stored value does not read the value. Expired messages are dropped on the way.
-- The running sum needs no ORDER BY: head is materialised in the order of seq, and another sort would change nothing.
-- Headers are at hand here, so those that ask to be forwarded are counted on the way.
-- Parameters: most messages, most bytes, claim id, the forwarding header's name.
WITH head AS MATERIALIZED (
    SELECT ctid, seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
    FROM {queue}
    ORDER BY seq
    LIMIT ?
    FOR UPDATE SKIP LOCKED
),
sized AS (
    SELECT ctid, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM head
),
taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(SELECT ctid FROM sized WHERE before < ?))
    RETURNING id, expires, headers, body, seq
),
kept AS (
    INSERT INTO {claimed} (claim_id, id, expires, headers, body, seq)
    SELECT CAST(? AS uuid), id, expires, headers, body, seq
    FROM taken
    WHERE expires IS NULL OR expires > (now() AT TIME ZONE 'UTC')
    RETURNING
        seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes,
        strpos(headers, CAST(? AS text)) > 0 AS forward
)
SELECT
    (SELECT count(*) FROM taken), count(*), COALESCE(sum(bytes), 0), min(seq), count(*) FILTER (WHERE forward)
FROM kept
