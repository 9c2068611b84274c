-- Stage results; the row is repeated for several.
-- Parameters of a row: claim id, task, pile, id, milliseconds, headers, body.
INSERT INTO {outbox} (claim_id, task, pile, id, milliseconds, headers, body)
VALUES
(CAST(? AS uuid), ?, ?, CAST(? AS uuid), ?, ?, ?)
