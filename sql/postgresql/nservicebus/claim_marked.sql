-- The messages of a claim whose headers hold a text. Parameters: claim id, the text.
SELECT seq FROM {claimed} WHERE claim_id = CAST(? AS uuid) AND strpos(headers, CAST(? AS text)) > 0 ORDER BY seq
