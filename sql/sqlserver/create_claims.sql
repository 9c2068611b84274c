-- One row a claim: who holds it, at which attempt, until when, and how often its messages have failed.
-- Owner is NULL once it was given back.
IF OBJECT_ID({claims_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {claims} (
        [ClaimId] uniqueidentifier NOT NULL PRIMARY KEY NONCLUSTERED,
        [Queue] nvarchar(400) NOT NULL,
        [Owner] nvarchar(200) NULL,
        [Attempt] int NOT NULL,
        [Messages] int NOT NULL,
        [Bytes] bigint NOT NULL,
        [FirstRowVersion] bigint NOT NULL,
        [ClaimedAt] datetime2(3) NOT NULL,
        [LeaseUntil] datetime2(3) NOT NULL,
        [Begun] bit NOT NULL DEFAULT 0,
        [Failures] int NOT NULL DEFAULT 0,
        [LastError] nvarchar(2000) NULL
    );
    CREATE CLUSTERED INDEX [Index_Queue] ON {claims} ([Queue], [FirstRowVersion]);
END
