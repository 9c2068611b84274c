-- Messages of a fresh claim that carry a forwarding header: a mover put them here on their way to another queue.
-- Parameters: claim id, the header's name.
SELECT Id, RowVersion, Headers, Body, NULL, NULL
FROM {claimed}
WHERE ClaimId = ? AND instr(Headers, ?) > 0
ORDER BY RowVersion
