-- Stage results; identity values follow the order of the rows.
-- Parameters: claim id, task, pile, then id, milliseconds, headers and body of each row.
INSERT INTO {outbox} (ClaimId, Task, Pile, Id, Milliseconds, Headers, Body)
SELECT
    common.ClaimId, common.Task, common.Pile, CAST(v.Id AS uniqueidentifier), v.Milliseconds, v.Headers, v.Body
FROM
    (SELECT CAST(? AS uniqueidentifier) AS ClaimId, CAST(? AS nvarchar(100)) AS Task, CAST(? AS int) AS Pile) AS common
CROSS JOIN (
VALUES
(?, ?, ?, ?)
) AS v (Id, Milliseconds, Headers, Body)
