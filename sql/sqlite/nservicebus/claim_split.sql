-- Hand the later messages of a claim to another. Parameters: new claim id, claim id, last RowVersion that stays.
UPDATE {claimed} SET ClaimId = ? WHERE ClaimId = ? AND RowVersion > ?
