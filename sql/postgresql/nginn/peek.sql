-- How many messages are ready, counted up to a limit and without a lock. Parameter: the limit.
SELECT COUNT(*) FROM (SELECT 1 AS one FROM {queue} WHERE subqueue = 'I' LIMIT ?) AS waiting
