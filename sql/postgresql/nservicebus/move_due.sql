-- Move delayed messages that are due into the input queue, oldest due first, passing over rows that another mover holds.
-- The delayed row's id is kept, as the reference keeps it. The head is found by due alone, which the index gives without
-- a sort: a large send makes all its rows due at the same instant, and each batch would sort every one of them.
WITH due AS (
    DELETE FROM {delayed}
    WHERE ctid = ANY (ARRAY(
        SELECT ctid FROM {delayed} WHERE due <= now() ORDER BY due LIMIT ? FOR UPDATE SKIP LOCKED
    ))
    RETURNING id, headers, body, due
)
INSERT INTO {queue} (id, expires, headers, body)
SELECT id, NULL, headers, body FROM due ORDER BY due, id
