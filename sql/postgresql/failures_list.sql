-- Queues whose batches fail, with for how many milliseconds on the database's clock.
SELECT queue, failures, CAST(extract(EPOCH FROM clock_timestamp() - since) * 1000 AS bigint), last_error
FROM {failures}
ORDER BY queue
