-- Cut a claim into parts of bounded messages and bytes, so that each can be read at once by whoever reads it.
-- Parameters: most messages a part, most bytes a part, claim id.
SELECT MIN(RowVersion), MAX(RowVersion), COUNT(*), SUM(Bytes)
FROM (
    SELECT
        RowVersion, Bytes,
        (ROW_NUMBER() OVER (ORDER BY RowVersion) - 1) / CAST(? AS bigint) AS RowPart,
        (SUM(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes) / CAST(? AS bigint) AS BytePart
    FROM (
        SELECT RowVersion, CAST(DATALENGTH(Headers) AS bigint) + ISNULL(DATALENGTH(Body), 0) AS Bytes
        FROM {claimed}
        WHERE ClaimId = CAST(? AS uniqueidentifier)
    ) AS sizes
) AS parts
GROUP BY RowPart, BytePart
ORDER BY 1
