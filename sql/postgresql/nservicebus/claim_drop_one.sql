-- Take one message out of a claim. Parameters: claim id, seq.
DELETE FROM {claimed} WHERE claim_id = CAST(? AS uuid) AND seq = ?
