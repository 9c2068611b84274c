-- What a range of a claim holds. Parameters: claim id, first and last id.
SELECT COUNT(*), COALESCE(SUM(bytes), 0), MIN(id)
FROM {claimed}
WHERE claim_id = ? AND id BETWEEN ? AND ?
