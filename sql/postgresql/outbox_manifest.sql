-- Keep what a job has staged in all, as its tasks reported it. Parameters: claim id, task, id, manifest.
INSERT INTO {outbox} (claim_id, task, pile, id, milliseconds, headers)
SELECT CAST(? AS uuid), CAST(? AS text), -1, CAST(? AS uuid), -1, CAST(? AS text)
