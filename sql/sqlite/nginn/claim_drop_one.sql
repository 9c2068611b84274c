-- Take one message out of a claim. Parameters: claim id, its id.
DELETE FROM {claimed} WHERE claim_id = ? AND id = ?
