-- A row whose headers cannot be read goes to the error queue as it is, with its own id unless that is already there
-- (id is a primary key here, and a person may have put the same row back once before).
-- Parameters: id, id, headers, 1 when the body was NULL, body.
INSERT INTO {queue} (id, expires, headers, body)
SELECT
    CASE WHEN EXISTS (SELECT 1 FROM {queue} WHERE id = CAST(? AS uuid)) THEN gen_random_uuid() ELSE CAST(? AS uuid) END,
    NULL,
    CAST(? AS text),
    CASE WHEN CAST(? AS integer) = 1 THEN NULL ELSE CAST(? AS bytea) END
