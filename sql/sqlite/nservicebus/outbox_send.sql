-- Move a pile of staged results into their queue, in the order in which they were staged. Parameters: claim id, task, pile.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT
    Id,
    CASE WHEN Milliseconds <> -1 THEN strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', Milliseconds / 1000.0)) END,
    Headers,
    Body
FROM {outbox}
WHERE ClaimId = ? AND Task = ? AND Pile = ?
ORDER BY Ordinal
