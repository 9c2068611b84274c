-- What decides whether a claimed message is one to work on: where it is for, its headers and the beginning of its body.
-- The database's clock comes along. Parameter: claim id.
SELECT q.id, q.to_endpoint, q.msg_headers, substr(q.msg_text, 1, 400), strftime('%Y-%m-%d %H:%M:%f', 'now')
FROM {claimed} AS c
INNER JOIN {queue} AS q ON q.id = c.id
WHERE c.claim_id = ?
ORDER BY q.id
