-- Hand the later messages of a claim to another. Parameters: new claim id, claim id, last id that stays.
UPDATE {claimed} SET claim_id = CAST(? AS uniqueidentifier) WHERE claim_id = CAST(? AS uniqueidentifier) AND id > ?
