-- Messages in claims that nobody holds, by queue: released, or lease over. A plain read beside the writer.
SELECT Queue, sum(Messages)
FROM {claims}
WHERE Owner IS NULL OR LeaseUntil <= CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
GROUP BY Queue
