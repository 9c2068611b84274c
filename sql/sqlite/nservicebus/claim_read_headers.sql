-- As claim_read.sql without the bodies, for readers that do not want them.
SELECT Id, RowVersion, Headers, NULL, NULL, NULL
FROM {claimed}
WHERE ClaimId = ? AND RowVersion BETWEEN ? AND ?
ORDER BY RowVersion
