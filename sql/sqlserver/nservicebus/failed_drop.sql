-- Delete chosen messages of an error queue for good, passing over those that somebody else holds.
-- The row is repeated for several messages. Parameter: RowVersion.
DELETE q
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
VALUES
(?)
) AS chosen (RowVersion) ON chosen.RowVersion = q.RowVersion;
SELECT @@ROWCOUNT;
