-- Move a pile of staged results into a delayed table; the delay counts from now, see store_delayed.sql.
-- Parameters: claim id, task, pile.
INSERT INTO {delayed} (Headers, Body, Due)
SELECT
    Headers, Body,
    DATEADD(
        millisecond, CAST(Milliseconds % 86400000 AS int),
        DATEADD(day, CAST(Milliseconds / 86400000 AS int), GETUTCDATE())
    )
FROM {outbox}
WHERE ClaimId = CAST(? AS uniqueidentifier) AND Task = ? AND Pile = ?
ORDER BY Ordinal;
SELECT @@ROWCOUNT;
