-- Queues whose batches fail, with for how many milliseconds on the database's clock.
SELECT Queue, Failures, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - Since, LastError
FROM {failures}
ORDER BY Queue
