-- A queue at a glance: waiting up to a limit, expired up to a limit, the oldest message's headers, database time.
-- Parameters: limit, limit.
SELECT
    (SELECT COUNT(*) FROM (SELECT TOP (?) RowVersion FROM {queue} WITH (NOLOCK) ORDER BY RowVersion) AS w),
    (SELECT COUNT(*) FROM (SELECT TOP (?) RowVersion FROM {queue} WITH (NOLOCK) WHERE Expires < GETUTCDATE()) AS e),
    (SELECT TOP (1) Headers FROM {queue} WITH (READPAST, READCOMMITTEDLOCK) ORDER BY RowVersion),
    DATEDIFF_BIG(millisecond, CAST('1970-01-01' AS datetime), GETUTCDATE())
