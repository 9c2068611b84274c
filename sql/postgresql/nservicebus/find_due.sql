-- The head of the delayed messages that are due, locked, with the headers of those that may be for another queue: all
-- but the ones that carry the forwarding header exactly as this transport writes it for the queue itself.
-- Headers are read by ctid once the head is known (see move_due.sql), so that no sort has to carry them.
-- Parameters: that header with its value, how many.
SELECT CAST(d.id AS text), CASE WHEN strpos(d.headers, CAST(? AS text)) = 0 THEN d.headers END
FROM {delayed} AS d
WHERE d.ctid = ANY (ARRAY(
    SELECT ctid FROM {delayed} WHERE due <= now() ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED
))
ORDER BY d.due, d.id
