-- Put the messages of a claim back into their queue, each in its old place. Parameter: claim id.
INSERT INTO {queue} (id, expires, headers, body, seq)
SELECT id, expires, headers, body, seq FROM {claimed} WHERE claim_id = CAST(? AS uuid) ORDER BY seq
