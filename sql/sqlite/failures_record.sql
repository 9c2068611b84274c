-- Count one more failed attempt in a row, and tell how many there are. Parameters: queue, error.
INSERT INTO {failures} (Queue, Failures, Since, LastError)
VALUES (?1, 1, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER), ?2)
ON CONFLICT (Queue) DO UPDATE SET Failures = Failures + 1, LastError = excluded.LastError
RETURNING Failures
