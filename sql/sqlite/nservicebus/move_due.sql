-- Copy delayed messages that are due into the input queue, oldest due first. Parameter: how many.
INSERT INTO {queue} (Id, Expires, Headers, Body)
SELECT Id, NULL, Headers, Body
FROM {delayed}
WHERE Due <= strftime('%Y-%m-%d %H:%M:%f', 'now')
ORDER BY Due, RowVersion
LIMIT ?
