-- Results that Spark executors staged, until the claim that they belong to is completed.
IF OBJECT_ID({outbox_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {outbox} (
        [ClaimId] uniqueidentifier NOT NULL,
        [Task] nvarchar(100) NOT NULL,
        [Destination] nvarchar(400) NOT NULL,
        [Ordinal] bigint NOT NULL,
        [Id] uniqueidentifier NOT NULL,
        [TtlMs] int NOT NULL,
        [Headers] nvarchar(max) NOT NULL,
        [Body] varbinary(max) NULL
    );
    CREATE CLUSTERED INDEX [Index_Claim] ON {outbox} ([ClaimId], [Task]);
END
