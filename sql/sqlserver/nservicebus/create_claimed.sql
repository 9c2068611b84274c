-- The messages of batches in work, moved out of the queue until their claim is completed.
IF OBJECT_ID({claimed_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {claimed} (
        [ClaimId] uniqueidentifier NOT NULL,
        [Id] uniqueidentifier NOT NULL,
        [CorrelationId] varchar(255) NULL,
        [ReplyToAddress] varchar(255) NULL,
        [Expires] datetime NULL,
        [Headers] nvarchar(max) NOT NULL,
        [Body] varbinary(max) NULL,
        [RowVersion] bigint NOT NULL
    );
    CREATE CLUSTERED INDEX [Index_Claim] ON {claimed} ([ClaimId], [RowVersion]);
END
