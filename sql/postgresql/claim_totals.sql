-- What is in work for a queue: claims, messages, and how many of the claims have no living owner. Parameter: queue.
SELECT
    count(*), COALESCE(sum(messages), 0),
    COALESCE(sum(CASE WHEN lease_until <= clock_timestamp() THEN 1 ELSE 0 END), 0)
FROM {claims}
WHERE queue = ?
