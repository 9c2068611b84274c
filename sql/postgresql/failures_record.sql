-- Count one more failed attempt in a row, and tell how many there are. Parameters: queue, error.
INSERT INTO {failures} AS known (queue, failures, since, last_error)
VALUES (?, 1, clock_timestamp(), ?)
ON CONFLICT (queue) DO UPDATE SET failures = known.failures + 1, last_error = excluded.last_error
RETURNING failures
