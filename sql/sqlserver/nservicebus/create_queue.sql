-- A queue, clustered on RowVersion: pages of received messages are given back, where a heap keeps them.
-- Headers are nvarchar, so that no character is lost.
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
    CREATE CLUSTERED INDEX [Index_RowVersion] ON {queue} ([RowVersion] ASC);
    CREATE NONCLUSTERED INDEX [Index_Expires] ON {queue} ([Expires] ASC) INCLUDE ([Id], [RowVersion]);
END
