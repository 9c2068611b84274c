-- Failed messages after an id, oldest first. Parameters: the id, how many.
DECLARE @after bigint = ?, @most int = ?;
SELECT TOP (@most)
    q.id, q.unique_id, q.label, q.retry_count, CAST(q.error_info AS varchar(max)),
    DATEDIFF_BIG(millisecond, q.retry_time, GETDATE())
FROM {queue} AS q WITH (NOLOCK)
WHERE q.subqueue = 'F' AND q.id > @after
ORDER BY q.id
