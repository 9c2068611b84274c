-- Who has how many places, with what is left of the lease in milliseconds on the database's clock; those whose lease ran out
-- have none. Parameters: queue, queue ('' = every queue).
SELECT
    queue, owner, CAST(count(*) AS integer),
    CAST(extract(EPOCH FROM min(lease_until) - clock_timestamp()) * 1000 AS bigint)
FROM {receivers}
WHERE place > 0 AND lease_until > clock_timestamp() AND (? = '' OR queue = ?)
GROUP BY queue, owner
ORDER BY queue, owner
