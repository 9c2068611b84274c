-- Move a pile of staged results into a delayed table; the delay counts from now. Parameters: claim id, task, pile.
INSERT INTO {delayed} (Id, Due, Headers, Body)
SELECT
    Id,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', Milliseconds / 1000.0)),
    Headers,
    Body
FROM {outbox}
WHERE ClaimId = ? AND Task = ? AND Pile = ?
ORDER BY Ordinal
