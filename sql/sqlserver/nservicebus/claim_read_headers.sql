-- As claim_read.sql without the bodies, for readers that do not want them.
SELECT Id, RowVersion, Headers, NULL AS Body, CorrelationId, ReplyToAddress
FROM {claimed}
WHERE ClaimId = CAST(? AS uniqueidentifier) AND RowVersion BETWEEN ? AND ?
ORDER BY RowVersion
