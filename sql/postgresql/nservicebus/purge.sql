-- Delete a batch of expired messages, passing over rows that a receiver holds.
DELETE FROM {queue}
WHERE ctid = ANY (ARRAY(
    SELECT ctid FROM {queue} WHERE expires < (now() AT TIME ZONE 'UTC') ORDER BY expires LIMIT ? FOR UPDATE SKIP LOCKED
))
