-- Cut a claim into parts of bounded messages and bytes, so that each can be read at once by whoever reads it.
-- Parameters: most messages a part, most bytes a part, claim id.
SELECT min(RowVersion), max(RowVersion), count(*), sum(Bytes)
FROM (
    SELECT
        RowVersion, Bytes,
        (row_number() OVER (ORDER BY RowVersion) - 1) / ? AS RowPart,
        (sum(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes) / ? AS BytePart
    FROM (
        SELECT RowVersion, length(CAST(Headers AS BLOB)) + COALESCE(length(Body), 0) AS Bytes
        FROM {claimed}
        WHERE ClaimId = ?
    )
)
GROUP BY RowPart, BytePart
ORDER BY 1
