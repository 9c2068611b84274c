-- What a job has staged in all. Parameters: claim id, task.
SELECT headers FROM {outbox} WHERE claim_id = CAST(? AS uuid) AND task = ? AND pile = -1
