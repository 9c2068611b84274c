-- Delete chosen messages of an error queue and return them in order, passing over those that somebody else holds.
-- The row is repeated for several messages. Parameter: seq.
WITH taken AS (
    DELETE FROM {queue}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {queue} WHERE seq IN (
VALUES
(CAST(? AS bigint))
        ) FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, seq, headers, body
)
SELECT CAST(id AS text), seq, headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM taken
ORDER BY seq
