-- Insert messages in subqueue I, due now (a day ago where they are urgent); one that expires carries its time in a
-- header. A message arrives as a JSON text of its columns and its body. The row is repeated for several messages, so it
-- is kept short; identity values follow the order of the rows. Parameters: id (not stored), milliseconds (-1 = for
-- ever), columns, body.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    JSON_VALUE(v.Columns, '$.from'),
    JSON_VALUE(v.Columns, '$.to'),
    'I',
    GETDATE(),
    NULL,
    0,
    CASE WHEN JSON_VALUE(v.Columns, '$.high') = 'yes' THEN DATEADD(day, -1, GETDATE()) ELSE GETDATE() END,
    JSON_VALUE(v.Columns, '$.correlation'),
    JSON_VALUE(v.Columns, '$.label'),
    CAST(v.Body AS varchar(max)),
    JSON_VALUE(v.Columns, '$.headers')
    + CASE
        WHEN v.Ttl = -1 THEN ''
        ELSE JSON_VALUE(v.Columns, '$.expires')
            + CONVERT(varchar(19), DATEADD(millisecond, v.Ttl + 999, GETDATE()), 120)
    END,
    JSON_VALUE(v.Columns, '$.unique')
FROM (
VALUES
(?, ?, ?, ?)
) AS v (Id, Ttl, Columns, Body)
