-- Stage one result; the library runs it once for each row.
-- Parameters: claim id, task, pile, id, milliseconds, headers, body.
INSERT INTO {outbox} (ClaimId, Task, Pile, Id, Milliseconds, Headers, Body)
VALUES (?, ?, ?, ?, ?, ?, ?)
