-- Claim: note which messages are ready and held by nobody, bounded by messages and by bytes (a first one is always
-- taken), and move them to subqueue R with the end of the lease as their retry time. Parameters: most messages, most
-- bytes, claim id, lease in milliseconds.
WITH head AS MATERIALIZED (
    SELECT id, retry_time, COALESCE(octet_length(msg_text), 0) + COALESCE(octet_length(msg_headers), 0) AS bytes
    FROM {queue}
    WHERE subqueue = 'I'
    ORDER BY {order}
    LIMIT ?
    FOR UPDATE SKIP LOCKED
),
sized AS (
    SELECT id, retry_time, bytes, sum(bytes) OVER (ROWS UNBOUNDED PRECEDING) - bytes AS before FROM head
),
noted AS (
    INSERT INTO {claimed} (claim_id, id, bytes, due, lease)
    SELECT
        CAST(p.claim AS uuid), s.id, s.bytes, s.retry_time,
        (now() AT TIME ZONE 'UTC') + p.lease * INTERVAL '1 millisecond'
    FROM sized AS s, (SELECT CAST(? AS bigint) AS bytes, CAST(? AS text) AS claim, CAST(? AS integer) AS lease) AS p
    WHERE s.before < p.bytes
    RETURNING id, lease
),
moved AS (
    UPDATE {queue} AS q SET subqueue = 'R', retry_time = n.lease FROM noted AS n WHERE q.id = n.id RETURNING q.id
)
SELECT count(*) FROM moved
