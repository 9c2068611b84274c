-- Claim, first half: note which messages are ready, bounded by messages and by bytes (a first one is always taken).
-- Parameters: most messages, most bytes, claim id, lease in milliseconds.
INSERT INTO {claimed} (claim_id, id, bytes, due, lease)
SELECT ?3, id, bytes, retry_time, strftime('%Y-%m-%d %H:%M:%f', 'now', printf('%+.3f seconds', ?4 / 1000.0))
FROM (
    SELECT id, bytes, retry_time, sum(bytes) OVER (ORDER BY place ROWS UNBOUNDED PRECEDING) - bytes AS before
    FROM (
        SELECT
            id, retry_time,
            COALESCE(length(CAST(msg_text AS BLOB)), 0) + COALESCE(length(CAST(msg_headers AS BLOB)), 0) AS bytes,
            row_number() OVER (ORDER BY {order}) AS place
        FROM {queue}
        WHERE subqueue = 'I'
        ORDER BY {order}
        LIMIT ?1
    )
)
WHERE before < ?2
