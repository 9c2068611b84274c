-- Put the messages of a claim back into their queue, at its end: writing an identity value takes a right that run-time
-- accounts do not have. Parameter: claim id.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT Id, CAST(1 AS bit) AS Recoverable, Expires, Headers, Body, RowVersion
    FROM {claimed}
    WHERE ClaimId = CAST(? AS uniqueidentifier)
) AS m
ORDER BY m.RowVersion
