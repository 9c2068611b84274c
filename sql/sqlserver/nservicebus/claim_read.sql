-- One part of a claim, in order. Parameters: claim id, first and last RowVersion.
SELECT Id, RowVersion, Headers, Body, CorrelationId, ReplyToAddress
FROM {claimed}
WHERE ClaimId = CAST(? AS uniqueidentifier) AND RowVersion BETWEEN ? AND ?
ORDER BY RowVersion
