-- A queue as version 6.0.1 and later create it: a heap, which avoids latch contention on the last page under many
-- concurrent senders, and keeps the pages of received messages.
IF OBJECT_ID({queue_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {queue} (
        [Id] uniqueidentifier NOT NULL,
        [CorrelationId] varchar(255) NULL,
        [ReplyToAddress] varchar(255) NULL,
        [Recoverable] bit NOT NULL,
        [Expires] datetime NULL,
        [Headers] nvarchar(max) NOT NULL,
        [Body] varbinary(max) NULL,
        [RowVersion] bigint IDENTITY(1, 1) NOT NULL
    );
    CREATE NONCLUSTERED INDEX [Index_RowVersion] ON {queue} ([RowVersion] ASC);
    CREATE NONCLUSTERED INDEX [Index_Expires] ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion])
        WHERE [Expires] IS NOT NULL;
END
