-- Completed claims, for plots and status without scanning.
IF OBJECT_ID({metrics_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {metrics} (
        [ClaimId] uniqueidentifier NOT NULL,
        [Queue] nvarchar(400) NOT NULL,
        [Owner] nvarchar(200) NOT NULL,
        [Attempt] int NOT NULL,
        [Messages] int NOT NULL,
        [Bytes] bigint NOT NULL,
        [Sent] int NOT NULL,
        [DurationMs] bigint NOT NULL,
        [CompletedAt] datetime2(3) NOT NULL
    );
    CREATE CLUSTERED INDEX [Index_Completed] ON {metrics} ([Queue], [CompletedAt]);
END
