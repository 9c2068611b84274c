-- Insert messages in subqueue I, due now (a day ago where they are urgent); one that expires carries its time in a
-- header. A message arrives as a JSON text of its columns and its body. Parameters: id (not stored), milliseconds (-1 =
-- for ever), columns, body.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(m.column3, '$.from'),
    json_extract(m.column3, '$.to'),
    'I',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    CASE
        WHEN json_extract(m.column3, '$.high') = 'yes' THEN strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')
        ELSE strftime('%Y-%m-%d %H:%M:%f', 'now')
    END,
    json_extract(m.column3, '$.correlation'),
    json_extract(m.column3, '$.label'),
    CAST(m.column4 AS TEXT),
    json_extract(m.column3, '$.headers')
    || CASE
        WHEN m.column2 = -1 THEN ''
        ELSE json_extract(m.column3, '$.expires')
            || strftime('%Y-%m-%d %H:%M:%S', 'now', printf('%+.3f seconds', m.column2 / 1000.0 + 0.999))
    END,
    json_extract(m.column3, '$.unique')
FROM (VALUES (?, ?, ?, ?)) AS m
