-- Claim, first half: copy the oldest messages into the queue's .Claimed table, bounded by messages and by bytes (the
-- first message is always taken). Parameters: most messages, most bytes, claim id.
INSERT INTO {claimed} (ClaimId, Id, Expires, Headers, Body, RowVersion)
SELECT ?3, q.Id, q.Expires, q.Headers, q.Body, q.RowVersion
FROM {queue} AS q
JOIN (
    SELECT RowVersion, sum(Bytes) OVER (ORDER BY RowVersion ROWS UNBOUNDED PRECEDING) - Bytes AS Before
    FROM (
        SELECT RowVersion, length(CAST(Headers AS BLOB)) + COALESCE(length(Body), 0) AS Bytes
        FROM {queue}
        ORDER BY RowVersion
        LIMIT ?1
    )
) AS sized ON sized.RowVersion = q.RowVersion
WHERE sized.Before < ?2
