-- As claim_read.sql without the bodies, for readers that do not want them.
SELECT CAST(id AS text), seq, headers, NULL AS body, NULL AS correlation_id, NULL AS reply_to_address
FROM {claimed}
WHERE claim_id = CAST(? AS uuid) AND seq BETWEEN ? AND ?
ORDER BY seq
