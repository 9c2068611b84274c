-- Cut a claim into parts of bounded messages and bytes, so that each can be read at once by whoever reads it.
-- Parameters: most messages a part, most bytes a part, claim id.
SELECT MIN(id), MAX(id), COUNT(*), SUM(bytes)
FROM (
    SELECT
        id, bytes,
        (ROW_NUMBER() OVER (ORDER BY id) - 1) / CAST(? AS bigint) AS row_part,
        (SUM(bytes) OVER (ORDER BY id ROWS UNBOUNDED PRECEDING) - bytes) / CAST(? AS bigint) AS byte_part
    FROM {claimed}
    WHERE claim_id = CAST(? AS uniqueidentifier)
) AS parts
GROUP BY row_part, byte_part
ORDER BY 1
