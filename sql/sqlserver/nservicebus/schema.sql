-- name: create_queue
-- A queue, clustered on RowVersion: pages of received messages are given back, where a heap keeps them. Headers are
-- nvarchar, so that no character is lost. Locks: the new table.
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

-- name: create_queue_heap
-- A queue as version 6.0.1 and later create it: a heap, which avoids latch contention on the last page under many
-- concurrent senders, and keeps the pages of received messages. Locks: the new table.
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

-- name: create_delayed
-- Messages that wait for their time; a mover brings them to the queue when they are due. Locks: the new table.
IF OBJECT_ID({delayed_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {delayed} (
        [Headers] nvarchar(max) NOT NULL,
        [Body] varbinary(max) NULL,
        [Due] datetime NOT NULL,
        [RowVersion] bigint IDENTITY(1, 1) NOT NULL
    );
    CREATE NONCLUSTERED INDEX [Index_Due] ON {delayed} ([Due]);
END

-- name: create_claimed
-- The messages of batches in work, moved out of the queue until their claim is completed. Locks: the new table.
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

-- name: add_body_string
-- The body as text for people who read the table; computed when read, as the reference does it: a cast, so only UTF-16
-- bodies are legible. Locks: the table, exclusively.
IF COL_LENGTH({queue_text}, N'BodyString') IS NULL
    ALTER TABLE {queue} ADD [BodyString] AS CAST([Body] AS nvarchar(max));

-- name: body_string_exists
-- One row when the queue already shows its bodies as text. Locks: none.
SELECT 1 WHERE COL_LENGTH({queue_text}, N'BodyString') IS NOT NULL

-- name: grant
-- The rights that a run-time account needs on a queue. Locks: the catalog only.
GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {account};
GRANT VIEW DEFINITION ON {queue} TO {account};
