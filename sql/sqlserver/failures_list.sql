-- Queues whose batches fail, with for how many milliseconds on the database's clock.
SELECT Queue, Failures, DATEDIFF_BIG(millisecond, Since, SYSUTCDATETIME()), LastError
FROM {failures}
ORDER BY Queue
