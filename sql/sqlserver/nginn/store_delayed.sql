-- Insert messages that are due later: they wait in subqueue R until some reader's scheduler moves them. A message
-- arrives as a JSON text of its columns and its body. The row is repeated for several messages, so it is kept short;
-- identity values follow the order of the rows. Parameters: id (not stored), milliseconds (-1 = for ever), columns,
-- body.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(v.Columns, '$.from'),
    JSON_VALUE(v.Columns, '$.to'),
    'R',
    GETDATE(),
    NULL,
    0,
    DATEADD(minute, v.Ttl / 60000, DATEADD(millisecond, v.Ttl % 60000, GETDATE())),
    JSON_VALUE(v.Columns, '$.correlation'),
    JSON_VALUE(v.Columns, '$.label'),
    CAST(v.Body AS varchar(max)),
    JSON_VALUE(v.Columns, '$.headers'),
    JSON_VALUE(v.Columns, '$.unique')
FROM (
VALUES
(?, ?, ?, ?)
) AS v (Id, Ttl, Columns, Body)
