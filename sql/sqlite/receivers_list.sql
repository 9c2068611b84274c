-- Who has how many places, with what is left of the lease in milliseconds on the database's clock; those whose lease ran out
-- have none. Parameters: queue, queue ('' = every queue).
SELECT Queue, Owner, count(*), min(LeaseUntil) - CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
FROM {receivers}
WHERE Place > 0
    AND LeaseUntil > CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
    AND (? = '' OR Queue = ?)
GROUP BY Queue, Owner
ORDER BY Queue, Owner
