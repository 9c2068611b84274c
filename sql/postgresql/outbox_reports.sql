-- What tasks reported of the parts that they read, by number. Parameters: claim id, task.
SELECT pile, body FROM {outbox} WHERE claim_id = CAST(? AS uuid) AND task = ?
