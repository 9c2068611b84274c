-- Hand the later messages of a claim to another. Parameters: new claim id, claim id, last RowVersion that stays.
UPDATE {claimed}
SET ClaimId = CAST(? AS uniqueidentifier)
WHERE ClaimId = CAST(? AS uniqueidentifier) AND RowVersion > ?
