-- Move a pile of staged results into their queue, in the order in which they were staged. The columns are those that this
-- table has, see send.sql. Parameters: claim id, task, pile.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        Id, CAST(1 AS bit) AS Recoverable,
        DATEADD(millisecond, CAST(NULLIF(Milliseconds, -1) AS int), GETUTCDATE()) AS Expires, Headers, Body, Ordinal
    FROM {outbox}
    WHERE ClaimId = CAST(? AS uniqueidentifier) AND Task = ? AND Pile = ?
) AS m
ORDER BY m.Ordinal;
SELECT @@ROWCOUNT;
