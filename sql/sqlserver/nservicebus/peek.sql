-- How many messages wait, counted up to a limit and without a row lock. NOLOCK sees a delete before it is committed, so
-- messages in work are not counted; it also sees sends that are not committed yet, which costs an empty receive at most.
SELECT COUNT(*)
FROM (SELECT TOP (?) RowVersion FROM {queue} WITH (NOLOCK) ORDER BY RowVersion) AS waiting
