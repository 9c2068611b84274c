-- Cut a claim into parts of bounded messages and bytes, so that each can be read at once by whoever reads it. Running counts
-- need no ORDER BY: rows come in the order of seq. Parameters: most messages a part, most bytes a part, claim id.
SELECT min(seq), max(seq), count(*), sum(bytes)
FROM (
    SELECT
        seq, bytes,
        (row_number() OVER so_far - 1) / CAST(? AS bigint) AS row_part,
        (sum(bytes) OVER so_far - bytes) / CAST(? AS bigint) AS byte_part
    FROM (
        SELECT seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
        FROM {claimed}
        WHERE claim_id = CAST(? AS uuid)
        ORDER BY seq
    ) AS sizes
    WINDOW so_far AS (ROWS UNBOUNDED PRECEDING)
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1
