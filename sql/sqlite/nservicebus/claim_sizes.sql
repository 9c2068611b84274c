-- What a range of a claim holds. Parameters: claim id, first and last RowVersion.
SELECT count(*), COALESCE(sum(length(CAST(Headers AS BLOB)) + COALESCE(length(Body), 0)), 0), min(RowVersion)
FROM {claimed}
WHERE ClaimId = ? AND RowVersion BETWEEN ? AND ?
