-- Receive: messages that are ready and held by nobody become processed ones, in a transaction that stays open while
-- they are worked on. The same locks as the reference takes: update locks at the look, rows that others hold are passed
-- over. Parameter: how many.
DECLARE @taken TABLE (id bigint, place int);
INSERT INTO @taken (id, place)
SELECT id, ROW_NUMBER() OVER (ORDER BY {order})
FROM (
    SELECT TOP (?) id, retry_time FROM {queue} WITH (UPDLOCK, READPAST, ROWLOCK) WHERE subqueue = 'I' ORDER BY {order}
) AS head;
UPDATE q
SET subqueue = 'X', last_processed = GETDATE()
FROM {queue} AS q WITH (ROWLOCK)
INNER JOIN @taken AS t ON t.id = q.id
WHERE q.subqueue = 'I';
SELECT
    q.id, q.unique_id, q.from_endpoint, q.to_endpoint, q.correlation_id, q.label, q.retry_count,
    DATEDIFF_BIG(millisecond, '19700101', DATEADD(minute, DATEDIFF(minute, GETDATE(), GETUTCDATE()), q.insert_time)),
    q.msg_headers, q.msg_text, GETDATE(), q.retry_time
FROM {queue} AS q
INNER JOIN @taken AS t ON t.id = q.id
ORDER BY t.place;
