-- One part of a claim, in order. Parameters: claim id, first and last RowVersion.
SELECT Id, RowVersion, Headers, Body, NULL, NULL
FROM {claimed}
WHERE ClaimId = ? AND RowVersion BETWEEN ? AND ?
ORDER BY RowVersion
