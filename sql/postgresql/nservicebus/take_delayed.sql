-- Take delayed messages out of their table, by the ids that find_due gave: they go straight to another queue.
-- What was taken comes back, so that a message which somebody else moved meanwhile is not sent twice.
DELETE FROM {delayed}
WHERE id IN (
VALUES
(CAST(? AS uuid))
)
RETURNING CAST(id AS text), CAST(id AS text), headers, body
