-- Insert messages. The columns are those that this table has: Recoverable was dropped from some, and is mandatory
-- where it stands. Expires is computed on the database's clock; -1 milliseconds means never.
-- The row is repeated for several messages; identity values follow the order of the rows.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
VALUES
    (CAST(? AS uniqueidentifier), CAST(1 AS bit), DATEADD(millisecond, NULLIF(CAST(? AS int), -1), GETUTCDATE()), ?, ?)
) AS m (Id, Recoverable, Expires, Headers, Body)
