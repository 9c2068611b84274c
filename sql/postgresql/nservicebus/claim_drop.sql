-- Delete the messages of a completed claim. Parameter: claim id.
DELETE FROM {claimed} WHERE claim_id = CAST(? AS uuid)
