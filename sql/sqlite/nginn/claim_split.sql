-- Hand the later messages of a claim to another. Parameters: new claim id, claim id, last id that stays.
UPDATE {claimed} SET claim_id = ? WHERE claim_id = ? AND id > ?
