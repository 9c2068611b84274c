-- What a job has staged in all. Parameters: claim id, task.
SELECT Headers FROM {outbox} WHERE ClaimId = CAST(? AS uniqueidentifier) AND Task = ? AND Pile = -1
