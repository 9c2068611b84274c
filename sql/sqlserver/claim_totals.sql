-- What is in work for a queue: claims, messages, and how many of the claims have no living owner. Parameter: queue.
SELECT
    COUNT(*), ISNULL(SUM(Messages), 0),
    ISNULL(SUM(CASE WHEN LeaseUntil <= SYSUTCDATETIME() THEN 1 ELSE 0 END), 0)
FROM {claims}
WHERE Queue = ?
