-- What a range of a claim holds. Parameters: claim id, first and last seq.
SELECT count(*), COALESCE(sum(octet_length(headers) + COALESCE(octet_length(body), 0)), 0), min(seq)
FROM {claimed}
WHERE claim_id = CAST(? AS uuid) AND seq BETWEEN ? AND ?
