-- Messages of a fresh claim that carry a forwarding header: a mover put them here on their way to another queue.
-- Parameters: claim id, the header's name.
SELECT CAST(id AS text), seq, headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM {claimed}
WHERE claim_id = CAST(? AS uuid) AND strpos(headers, CAST(? AS text)) > 0
ORDER BY seq
