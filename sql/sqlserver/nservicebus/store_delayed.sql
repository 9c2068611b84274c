-- Insert delayed messages; due is computed on the database's clock, in days and milliseconds because DATEADD takes
-- 32-bit numbers only. Parameters of a row: id (not stored: the mover gives a new one), delay in milliseconds, headers, body.
INSERT INTO {delayed} (Headers, Body, Due)
SELECT
    v.Headers, v.Body,
    DATEADD(
        millisecond, CAST(CAST(v.Delay AS bigint) % 86400000 AS int),
        DATEADD(day, CAST(CAST(v.Delay AS bigint) / 86400000 AS int), GETUTCDATE())
    )
FROM (
VALUES
(?, ?, ?, ?)
) AS v (Id, Delay, Headers, Body)
