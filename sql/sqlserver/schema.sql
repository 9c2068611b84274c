-- name: lock
-- One installer at a time per table. .NET installers take the same lock. sp_getapplock does not begin a transaction by
-- itself, and fails without one. Locks: the application lock, until the transaction ends.
IF @@TRANCOUNT = 0 BEGIN TRANSACTION;
DECLARE @result int;
EXEC @result = sp_getapplock @Resource = :lock, @LockMode = N'Exclusive', @LockOwner = N'Transaction',
    @LockTimeout = 60000;
SELECT @result;

-- name: exists
-- One row when the table exists and this account can see it. Locks: none.
SELECT 1 WHERE OBJECT_ID({queue_text}, N'U') IS NOT NULL

-- name: columns
-- Columns of a queue table and their types; they tell its version. Locks: none.
SELECT c.name, t.name
FROM {sys}.columns AS c
INNER JOIN {sys}.types AS t ON t.user_type_id = c.user_type_id
WHERE c.object_id = OBJECT_ID({queue_text}, N'U')

-- name: create_claims
-- One row per claim: its owner, its generation, the end of its lease, and how often its messages have failed. Owner is
-- NULL once the claim was given back. Locks: the new table.
IF OBJECT_ID({claims_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {claims} (
        [ClaimId] uniqueidentifier NOT NULL PRIMARY KEY NONCLUSTERED,
        [Queue] nvarchar(400) NOT NULL,
        [Owner] nvarchar(200) NULL,
        [Generation] int NOT NULL,
        [Messages] int NOT NULL,
        [Bytes] bigint NOT NULL,
        [FirstRowVersion] bigint NOT NULL,
        [ClaimedAt] datetime2(3) NOT NULL,
        [LeaseUntil] datetime2(3) NOT NULL,
        [Begun] bit NOT NULL DEFAULT 0,
        [Isolated] bit NOT NULL DEFAULT 0,
        [Failures] int NOT NULL DEFAULT 0,
        [LastError] nvarchar(2000) NULL
    );
    CREATE CLUSTERED INDEX [Index_Queue] ON {claims} ([Queue], [FirstRowVersion]);
END

-- name: create_outbox
-- Results that Spark executors staged, until their claim is completed: one row per message, numbered in the order of
-- staging, and one row with the manifest of each job. Locks: the new table.
IF OBJECT_ID({outbox_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {outbox} (
        [ClaimId] uniqueidentifier NOT NULL,
        [Task] nvarchar(100) NOT NULL,
        [GroupNumber] int NOT NULL,
        [Ordinal] bigint IDENTITY(1,1) NOT NULL,
        [Id] uniqueidentifier NOT NULL,
        [Milliseconds] bigint NOT NULL,
        [Headers] nvarchar(max) NOT NULL,
        [Body] varbinary(max) NULL
    );
    CREATE CLUSTERED INDEX [Index_Claim] ON {outbox} ([ClaimId], [Task], [GroupNumber], [Ordinal]);
END

-- name: create_pauses
-- What operators have paused: one row per name, deleted when it is resumed. Locks: the new table.
IF OBJECT_ID({pauses_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {pauses} (
        [Name] nvarchar(200) NOT NULL PRIMARY KEY,
        [PausedAt] datetime2(3) NOT NULL,
        [PausedBy] nvarchar(200) NOT NULL,
        [Reason] nvarchar(1000) NOT NULL
    );
END

-- name: create_failures
-- One row per queue: how many attempts on its batches failed in a row, since when, and the last error; and which code
-- and Spark last processed a message. Locks: the new table.
IF OBJECT_ID({failures_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {failures} (
        [Queue] nvarchar(400) NOT NULL PRIMARY KEY,
        [Failures] int NOT NULL,
        [Since] datetime2(3) NOT NULL,
        [LastError] nvarchar(2000) NOT NULL,
        [Proof] nvarchar(100) NULL
    );
END

-- name: create_slots
-- Slots in use: a row is a slot, which has room for one batch, with its owner, the end of its lease, when it was taken
-- and, once the owner takes no further batch, why. The process is known while it works on batches ('' before): others
-- on its machine then see when it is gone. Slot 0 of a queue belongs to no owner: a process that takes slots
-- locks that row first, so that only one counts them at a time.
-- Locks: the new table.
IF OBJECT_ID({slots_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {slots} (
        [Queue] nvarchar(400) NOT NULL,
        [Slot] int NOT NULL,
        [Owner] nvarchar(200) NOT NULL,
        [LeaseUntil] datetime2(3) NOT NULL,
        [TakenAt] datetime2(3) NOT NULL,
        [Ending] nvarchar(400) NULL,
        [Process] nvarchar(200) NOT NULL,
        PRIMARY KEY ([Queue], [Slot])
    );
END

-- name: create_subscriptions
-- Which endpoint wants which events, in the shape that all NServiceBus endpoints share: one row per endpoint and topic.
-- Locks: the new table.
IF OBJECT_ID({subscriptions_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {subscriptions} (
        [QueueAddress] nvarchar(200) NOT NULL,
        [Endpoint] nvarchar(200) NOT NULL,
        [Topic] nvarchar(200) NOT NULL,
        PRIMARY KEY ([Endpoint], [Topic])
    );
END

-- name: grant
-- The rights that a run-time account needs on a table that belongs to a queue or to the transport. Locks: the catalog
-- only.
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {account};
GRANT VIEW DEFINITION ON {table} TO {account};
