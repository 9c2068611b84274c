-- The messages of a claim whose headers hold a text. Parameters: claim id, the text.
SELECT c.id
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = ? AND instr(q.msg_headers, ?) > 0
ORDER BY c.id
