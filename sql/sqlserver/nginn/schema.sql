-- name: create_queue
-- A queue exactly as NGinn.MessageBus creates it; times are the server's local time. Locks: the new table.
IF OBJECT_ID({queue_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {queue} (
        [id] bigint IDENTITY(1, 1) NOT NULL,
        [from_endpoint] varchar(50) NOT NULL,
        [to_endpoint] varchar(50) NOT NULL,
        [subqueue] char(1) NOT NULL,
        [insert_time] datetime NOT NULL,
        [last_processed] datetime NULL,
        [retry_count] int NOT NULL,
        [retry_time] datetime NOT NULL,
        [error_info] text NULL,
        [correlation_id] varchar(100) NULL,
        [label] varchar(100) NULL,
        [msg_text] varchar(max) NULL,
        [msg_headers] varchar(max) NULL,
        [unique_id] varchar(40) NULL,
        CONSTRAINT {key_index} PRIMARY KEY CLUSTERED ([id] ASC)
    );
    CREATE NONCLUSTERED INDEX {subqueue_index} ON {queue} ([subqueue] ASC, [retry_time] ASC) INCLUDE ([id]);
END

-- name: create_claimed
-- Which messages belong to batches in work. The messages themselves stay in the queue, in subqueue R, with the end of
-- the lease as their retry time: any other reader of the queue returns them when the lease is over. While retry_time
-- equals the lease stored here, a message belongs to its claim. Locks: the new table.
IF OBJECT_ID({claimed_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {claimed} (
        [claim_id] uniqueidentifier NOT NULL,
        [id] bigint NOT NULL,
        [bytes] bigint NOT NULL,
        [due] datetime NOT NULL,
        [lease] datetime NOT NULL
    );
    CREATE CLUSTERED INDEX [Index_Claim] ON {claimed} ([claim_id], [id]);
    CREATE NONCLUSTERED INDEX {claimed_index} ON {claimed} ([id]) INCLUDE ([lease]);
END

-- name: create_sequences
-- The state of each sequence of messages: the table of NGinn.MessageBus, one row per living sequence. Locks: the new
-- table.
IF OBJECT_ID({sequences_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {sequences} (
        [id] varchar(100) NOT NULL,
        [data] varchar(max) NOT NULL,
        [last_modified] datetime NOT NULL,
        CONSTRAINT {key_index} PRIMARY KEY CLUSTERED ([id])
    );
END

-- name: create_subscriptions
-- Who subscribed to what at which publisher: the table of NGinn.MessageBus, shared by all buses of a database. Locks:
-- the new table.
IF OBJECT_ID({subscriptions_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {subscriptions} (
        [publisher_endpoint] varchar(200) NOT NULL,
        [subscriber_endpoint] varchar(200) NOT NULL,
        [message_type] varchar(300) NOT NULL,
        [created_date] datetime NOT NULL,
        [expiration_date] datetime NULL,
        CONSTRAINT {key_index} PRIMARY KEY CLUSTERED ([publisher_endpoint], [message_type], [subscriber_endpoint])
    );
END

-- name: grant
-- The rights that a run-time account needs on a queue. Locks: the catalog only.
GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {account};
GRANT VIEW DEFINITION ON {queue} TO {account};
