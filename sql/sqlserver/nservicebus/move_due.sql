-- Move delayed messages that are due into the input queue, oldest due first, passing over rows that another mover holds.
-- They go through a table variable because OUTPUT INTO would number them in any order. Only Due has an index: the outer
-- condition on it keeps the join away from all that is not due yet.
DECLARE @due TABLE (Headers nvarchar(max), Body varbinary(max), Due datetime, RowVersion bigint);
DELETE d
OUTPUT deleted.Headers, deleted.Body, deleted.Due, deleted.RowVersion
INTO @due (Headers, Body, Due, RowVersion)
FROM {delayed} AS d WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
    SELECT TOP (?) RowVersion
    FROM {delayed} WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE Due <= GETUTCDATE()
    ORDER BY Due, RowVersion
) AS head ON head.RowVersion = d.RowVersion
WHERE d.Due <= GETUTCDATE();
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        NEWID() AS Id, CAST(1 AS bit) AS Recoverable, CAST(NULL AS datetime) AS Expires, Headers, Body, Due, RowVersion
    FROM @due
) AS m
ORDER BY m.Due, m.RowVersion;
SELECT @@ROWCOUNT;
