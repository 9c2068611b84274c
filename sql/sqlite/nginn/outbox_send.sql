-- Move a pile of staged results into their queue, in the order in which they were staged, see send.sql.
-- Parameters: claim id, task, pile.
INSERT INTO {queue} (
    from_endpoint, to_endpoint, subqueue, insert_time, last_processed, retry_count, retry_time, correlation_id, label,
    msg_text, msg_headers, unique_id
)
SELECT
    json_extract(o.Headers, '$.from'),
    json_extract(o.Headers, '$.to'),
    'I',
    strftime('%Y-%m-%d %H:%M:%f', 'now'),
    NULL,
    0,
    CASE
        WHEN json_extract(o.Headers, '$.high') = 'yes' THEN strftime('%Y-%m-%d %H:%M:%f', 'now', '-1 day')
        ELSE strftime('%Y-%m-%d %H:%M:%f', 'now')
    END,
    json_extract(o.Headers, '$.correlation'),
    json_extract(o.Headers, '$.label'),
    CAST(o.Body AS TEXT),
    json_extract(o.Headers, '$.headers')
    || CASE
        WHEN o.Milliseconds = -1 THEN ''
        ELSE json_extract(o.Headers, '$.expires')
            || strftime('%Y-%m-%d %H:%M:%S', 'now', printf('%+.3f seconds', o.Milliseconds / 1000.0 + 0.999))
    END,
    json_extract(o.Headers, '$.unique')
FROM {outbox} AS o
WHERE o.ClaimId = ? AND o.Task = ? AND o.Pile = ?
ORDER BY o.Ordinal
