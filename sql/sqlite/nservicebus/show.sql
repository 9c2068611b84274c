-- Look at the oldest messages without taking them. Parameter: how many.
SELECT
    Id, RowVersion, Expires, strftime('%Y-%m-%d %H:%M:%f', 'now'), Headers, Body, NULL, NULL
FROM {queue}
ORDER BY RowVersion
LIMIT ?
