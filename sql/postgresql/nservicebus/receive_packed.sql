-- Receive many: delete the oldest messages that nobody else is receiving, bounded by messages and by bytes (the first is always
-- taken), and return them packed as claim_read_packed.sql does. What has expired is dropped on the way, and counted.
-- They come in the order in which they lie on the disk: the reader sorts by seq, which moves no message about.
-- Parameters: most messages, most bytes, the forwarding header's name.
WITH head AS MATERIALIZED (
    SELECT ctid, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
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
    RETURNING id, seq, headers, body, expires <= (now() AT TIME ZONE 'UTC') AS expired
)
SELECT
    (SELECT count(*) FROM taken WHERE expired),
    count(*) FILTER (WHERE strpos(headers, CAST(? AS text)) > 0),
    string_agg(uuid_send(id), ''), string_agg(int8send(seq), ''),
    string_agg(int4send(octet_length(headers)), ''), string_agg(int4send(COALESCE(octet_length(body), -1)), ''),
    string_agg(convert_to(headers, 'UTF8'), ''), COALESCE(string_agg(body, ''), '')
FROM taken
WHERE expired IS NOT TRUE
