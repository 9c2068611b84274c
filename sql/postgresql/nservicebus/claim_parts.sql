-- Cut a claim into parts of bounded messages and bytes, so that each can be read at once by whoever reads it.
-- Parameters: most messages a part, most bytes a part, claim id.
SELECT min(seq), max(seq), count(*), sum(bytes)
FROM (
    SELECT
        seq, bytes,
        (row_number() OVER (ORDER BY seq) - 1) / CAST(? AS bigint) AS row_part,
        CAST(sum(bytes) OVER (ORDER BY seq ROWS UNBOUNDED PRECEDING) - bytes AS bigint) / CAST(? AS bigint) AS byte_part
    FROM (
        SELECT seq, octet_length(headers) + COALESCE(octet_length(body), 0) AS bytes
        FROM {claimed}
        WHERE claim_id = CAST(? AS uuid)
    ) AS sizes
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1
