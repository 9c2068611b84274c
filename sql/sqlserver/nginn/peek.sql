-- How many messages are ready, counted up to a limit and without a lock. Parameter: the limit.
SELECT COUNT(*) FROM (SELECT TOP (?) 1 AS one FROM {queue} WITH (NOLOCK) WHERE subqueue = 'I') AS waiting
