-- A queue exactly as NGinn.MessageBus creates it; times are the server's local time.
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
