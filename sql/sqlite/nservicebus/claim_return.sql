-- Put the messages of a claim back into their queue, each in its old place. Parameter: claim id.
INSERT INTO {queue} (Id, Expires, Headers, Body, RowVersion)
SELECT Id, Expires, Headers, Body, RowVersion FROM {claimed} WHERE ClaimId = ? ORDER BY RowVersion
