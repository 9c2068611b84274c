-- How far each sequence of messages got: the table of NGinn.MessageBus, one row a living sequence.
IF OBJECT_ID({sequences_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {sequences} (
        [id] varchar(100) NOT NULL,
        [data] varchar(max) NOT NULL,
        [last_modified] datetime NOT NULL,
        CONSTRAINT {key_index} PRIMARY KEY CLUSTERED ([id])
    );
END
