-- Hand a range of a claim's messages to another. Parameters: new claim id, claim id, first and last RowVersion of the range.
UPDATE {claimed}
SET ClaimId = CAST(? AS uniqueidentifier)
WHERE ClaimId = CAST(? AS uniqueidentifier) AND RowVersion BETWEEN ? AND ?
