-- What tasks reported of the parts that they read, by number. Parameters: claim id, task.
SELECT Pile, Body FROM {outbox} WHERE ClaimId = ? AND Task = ?
