-- Free the places of a queue whose lease ran out. Parameter: queue.
DELETE FROM {receivers}
WHERE Queue = ? AND Place > 0 AND LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
