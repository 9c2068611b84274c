-- One part of a claim, in order. Parameters: claim id, first and last seq.
SELECT CAST(id AS text), seq, headers, body, NULL AS correlation_id, NULL AS reply_to_address
FROM {claimed}
WHERE claim_id = CAST(? AS uuid) AND seq BETWEEN ? AND ?
ORDER BY seq
