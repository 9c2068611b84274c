-- Results that Spark executors staged, until the claim that they belong to is completed: one row a message, numbered as
-- they were staged, and one row with the manifest of each job.
IF OBJECT_ID({outbox_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {outbox} (
        [ClaimId] uniqueidentifier NOT NULL,
        [Task] nvarchar(100) NOT NULL,
        [Pile] int NOT NULL,
        [Ordinal] bigint IDENTITY(1,1) NOT NULL,
        [Id] uniqueidentifier NOT NULL,
        [Milliseconds] bigint NOT NULL,
        [Headers] nvarchar(max) NOT NULL,
        [Body] varbinary(max) NULL
    );
    CREATE CLUSTERED INDEX [Index_Claim] ON {outbox} ([ClaimId], [Task], [Pile], [Ordinal]);
END
