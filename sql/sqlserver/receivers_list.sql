-- Who has how many places, with what is left of the lease in milliseconds on the database's clock; those whose lease ran out
-- have none. NOLOCK, because those who only look must not be waited for; a look that is a moment wrong costs a run that
-- finds no place at most. Parameters: queue, queue ('' = every queue).
SELECT Queue, Owner, COUNT(*), DATEDIFF_BIG(millisecond, SYSUTCDATETIME(), MIN(LeaseUntil))
FROM {receivers} WITH (NOLOCK)
WHERE Place > 0 AND LeaseUntil > SYSUTCDATETIME() AND (? = N'' OR Queue = ?)
GROUP BY Queue, Owner
ORDER BY Queue, Owner
