-- Delete chosen messages of an error queue for good, passing over those that somebody else holds.
-- The row is repeated for several messages. Parameter: seq.
DELETE FROM {queue}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {queue} WHERE seq IN (
VALUES
(CAST(? AS bigint))
    ) FOR UPDATE SKIP LOCKED
))
