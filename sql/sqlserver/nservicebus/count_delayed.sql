-- How many messages wait for their time, counted up to a limit, and the milliseconds until the next is due.
SELECT
    (SELECT COUNT(*) FROM (SELECT TOP (?) RowVersion FROM {delayed} WITH (NOLOCK)) AS d),
    (SELECT DATEDIFF_BIG(millisecond, GETUTCDATE(), MIN(Due)) FROM {delayed} WITH (READPAST, READCOMMITTEDLOCK))
