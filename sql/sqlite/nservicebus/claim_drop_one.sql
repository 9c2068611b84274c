-- Take one message out of a claim. Parameters: claim id, RowVersion.
DELETE FROM {claimed} WHERE ClaimId = ? AND RowVersion = ?
