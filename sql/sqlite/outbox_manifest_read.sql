-- What a job has staged in all. Parameters: claim id, task.
SELECT Headers FROM {outbox} WHERE ClaimId = ? AND Task = ? AND Pile = -1
