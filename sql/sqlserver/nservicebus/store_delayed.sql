-- Insert delayed messages; due is computed on the database's clock, in days and milliseconds because DATEADD takes
-- 32-bit numbers only. Parameters of a row: id (not stored: the mover gives a new one), delay in milliseconds, headers, body.
INSERT INTO {delayed} (Headers, Body, Due)
SELECT
    Headers, Body,
    DATEADD(millisecond, CAST(Delay % 86400000 AS int), DATEADD(day, CAST(Delay / 86400000 AS int), GETUTCDATE()))
FROM (
VALUES
    (CAST(? AS uniqueidentifier), CAST(? AS bigint), ?, ?)
) AS m (Id, Delay, Headers, Body)
