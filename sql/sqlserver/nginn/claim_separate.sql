-- Hand a range of a claim's messages to another. Parameters: new claim id, claim id, first and last id of the range.
UPDATE {claimed}
SET claim_id = CAST(? AS uniqueidentifier)
WHERE claim_id = CAST(? AS uniqueidentifier) AND id BETWEEN ? AND ?
