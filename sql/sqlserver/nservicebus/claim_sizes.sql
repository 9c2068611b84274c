-- What a range of a claim holds. Parameters: claim id, first and last RowVersion.
SELECT
    COUNT(*), ISNULL(SUM(CAST(DATALENGTH(Headers) AS bigint) + ISNULL(DATALENGTH(Body), 0)), 0), MIN(RowVersion)
FROM {claimed}
WHERE ClaimId = CAST(? AS uniqueidentifier) AND RowVersion BETWEEN ? AND ?
