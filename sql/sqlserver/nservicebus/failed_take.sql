-- Delete chosen messages of an error queue and return them (sorted by the caller), passing over those that somebody
-- else holds. The row is repeated for several messages. Parameter: RowVersion.
DELETE q
OUTPUT deleted.Id, deleted.RowVersion, deleted.Headers, deleted.Body, {correlation_id}, {reply_to_address}
FROM {queue} AS q WITH (UPDLOCK, READPAST, ROWLOCK)
INNER JOIN (
VALUES
(?)
) AS chosen (RowVersion) ON chosen.RowVersion = q.RowVersion
