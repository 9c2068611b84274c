-- Insert messages. The columns are those that this table has: Recoverable was dropped from some, and is mandatory
-- where it stands. Expires is computed on the database's clock; -1 milliseconds means never.
-- The row is repeated for several messages, so it is kept short; identity values follow the order of the rows.
INSERT INTO {queue} ({columns})
SELECT {columns}
FROM (
    SELECT
        CAST(v.Id AS uniqueidentifier) AS Id, CAST(1 AS bit) AS Recoverable,
        DATEADD(millisecond, NULLIF(v.Ttl, -1), GETUTCDATE()) AS Expires, v.Headers, v.Body
    FROM (
VALUES
(?, ?, ?, ?)
    ) AS v (Id, Ttl, Headers, Body)
) AS m
