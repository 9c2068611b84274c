-- Messages in claims that nobody holds, by queue: released, or lease over. NOLOCK, because a completion may hold its row
-- for long, and claimers must not wait for those who only look; a look that is a moment wrong costs an empty claim at most.
SELECT Queue, CAST(SUM(CAST(Messages AS bigint)) AS bigint)
FROM {claims} WITH (NOLOCK)
WHERE Owner IS NULL OR LeaseUntil <= SYSUTCDATETIME()
GROUP BY Queue
