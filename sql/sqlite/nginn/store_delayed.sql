-- Insert messages that are due later: they wait in subqueue R until some reader's scheduler moves them. A message
-- arrives as a JSON text of its columns and its body. Parameters: id (not stored), milliseconds (-1 = for ever),
-- columns, body.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(m.column3, '$.from'),
    json_extract(m.column3, '$.to'),
    'R',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', m.column2 / 1000.0)),
    json_extract(m.column3, '$.correlation'),
    json_extract(m.column3, '$.label'),
    CAST(m.column4 AS TEXT),
    json_extract(m.column3, '$.headers'),
    json_extract(m.column3, '$.unique')
FROM (VALUES (?, ?, ?, ?)) AS m
