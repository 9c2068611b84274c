-- Move a pile of staged results into their queue, in the order in which they were staged, see send.sql.
-- Parameters: claim id, task, pile.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(o.Headers, '$.from'),
    JSON_VALUE(o.Headers, '$.to'),
    'I',
    GETDATE(),
    NULL,
    0,
    CASE WHEN JSON_VALUE(o.Headers, '$.high') = 'yes' THEN DATEADD(day, -1, GETDATE()) ELSE GETDATE() END,
    JSON_VALUE(o.Headers, '$.correlation'),
    JSON_VALUE(o.Headers, '$.label'),
    CAST(o.Body AS varchar(max)),
    JSON_VALUE(o.Headers, '$.headers')
    + CASE
        WHEN CAST(o.Milliseconds AS int) = -1 THEN ''
        ELSE JSON_VALUE(o.Headers, '$.expires')
            + CONVERT(varchar(19), DATEADD(millisecond, CAST(o.Milliseconds AS int) + 999, GETDATE()), 120)
    END,
    JSON_VALUE(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = CAST(? AS uniqueidentifier) AND o.Task = ? AND o.Pile = ?
ORDER BY o.Ordinal;
SELECT @@ROWCOUNT;
