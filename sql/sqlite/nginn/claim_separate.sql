-- Hand a range of a claim's messages to another. Parameters: new claim id, claim id, first and last id of the range.
UPDATE {claimed} SET claim_id = ? WHERE claim_id = ? AND id BETWEEN ? AND ?
