-- The messages of a claim whose headers hold a text. Parameters: claim id, the text.
SELECT RowVersion FROM {claimed} WHERE ClaimId = ? AND instr(Headers, ?) > 0 ORDER BY RowVersion
