-- Move a pile of staged results into their queue, in the order in which they were staged, see store_delayed.sql.
-- Parameters: claim id, task, pile.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(o.Headers, '$.from'),
    JSON_VALUE(o.Headers, '$.to'),
    'R',
    GETDATE(),
    NULL,
    0,
    DATEADD(minute, o.Milliseconds / 60000, DATEADD(millisecond, o.Milliseconds % 60000, GETDATE())),
    JSON_VALUE(o.Headers, '$.correlation'),
    JSON_VALUE(o.Headers, '$.label'),
    CAST(o.Body AS varchar(max)),
    JSON_VALUE(o.Headers, '$.headers'),
    JSON_VALUE(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = CAST(? AS uniqueidentifier) AND o.Task = ? AND o.Pile = ?
ORDER BY o.Ordinal;
SELECT @@ROWCOUNT;
