-- A page of an error queue without the bodies, oldest first. Parameters: the seq after which it begins, the last one,
-- how many.
SELECT
    CAST(id AS text), seq, headers, COALESCE(octet_length(body), 0), NULL AS correlation_id, NULL AS reply_to_address
FROM {queue}
WHERE seq > ? AND seq <= ?
ORDER BY seq
LIMIT ?
