-- One part of a claim, in order, packed: a driver takes a few large values faster than many small ones. What is aggregated
-- comes in the order of the rows below it. Integers are big-endian; the size of a body that is NULL, or that was not asked
-- for, is -1. Parameters: whether bodies are wanted (1 or 0), claim id, first and last seq.
SELECT
    string_agg(uuid_send(id), ''), string_agg(int8send(seq), ''),
    string_agg(int4send(octet_length(headers)), ''), string_agg(int4send(COALESCE(octet_length(body), -1)), ''),
    string_agg(convert_to(headers, 'UTF8'), ''), COALESCE(string_agg(body, ''), '')
FROM (
    SELECT m.id, m.seq, m.headers, CASE WHEN wanted.body = 1 THEN m.body END AS body
    FROM (SELECT CAST(? AS integer) AS body) AS wanted, {claimed} AS m
    WHERE m.claim_id = CAST(? AS uuid) AND m.seq BETWEEN ? AND ?
    ORDER BY m.seq
) AS messages
