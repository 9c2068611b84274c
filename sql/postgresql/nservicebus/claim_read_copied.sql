-- One part of a claim, in order, as claim_read_packed.sql has it, in the form of receive_copied.sql.
-- Parameters, which COPY takes as literals: whether bodies are wanted (1 or 0), claim id, first and last seq.
COPY (
    SELECT m.id, m.seq, FALSE, convert_to(m.headers, 'UTF8'), CASE WHEN wanted.body = 1 THEN m.body END
    FROM (SELECT CAST(? AS integer) AS body) AS wanted, {claimed} AS m
    WHERE m.claim_id = CAST(? AS uuid) AND m.seq BETWEEN ? AND ?
    ORDER BY m.seq
) TO STDOUT WITH (FORMAT BINARY)
