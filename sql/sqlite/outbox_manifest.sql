-- Keep what a job has staged in all, as its tasks reported it. Parameters: claim id, task, id, manifest.
INSERT INTO {outbox} (ClaimId, Task, Pile, Id, Milliseconds, Headers)
VALUES (?, ?, -1, ?, -1, ?)
