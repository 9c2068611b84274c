-- The messages of a claim whose headers hold a text. Parameters: claim id, the text.
SELECT RowVersion
FROM {claimed}
WHERE ClaimId = CAST(? AS uniqueidentifier) AND CHARINDEX(?, Headers) > 0
ORDER BY RowVersion
