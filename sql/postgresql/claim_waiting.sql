-- Messages in claims that nobody holds, by queue: released, or lease over. A plain read, which locks no row.
SELECT queue, CAST(sum(messages) AS bigint)
FROM {claims}
WHERE owner IS NULL OR lease_until <= clock_timestamp()
GROUP BY queue
