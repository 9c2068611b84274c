-- Queues whose batches fail: how many attempts in a row, since when, and the last error. Gone with the first success.
IF OBJECT_ID({failures_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {failures} (
        [Queue] nvarchar(400) NOT NULL PRIMARY KEY,
        [Failures] int NOT NULL,
        [Since] datetime2(3) NOT NULL,
        [LastError] nvarchar(2000) NOT NULL
    );
END
