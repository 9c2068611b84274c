-- Hand a range of a claim's messages to another. Parameters: new claim id, claim id, first and last RowVersion of the range.
UPDATE {claimed} SET ClaimId = ? WHERE ClaimId = ? AND RowVersion BETWEEN ? AND ?
