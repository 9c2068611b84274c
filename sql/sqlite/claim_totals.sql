-- What is in work for a queue: claims, messages, and how many of the claims have no living owner. Parameter: queue.
SELECT
    count(*), COALESCE(sum(Messages), 0),
    COALESCE(sum(LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)), 0)
FROM {claims}
WHERE Queue = ?
