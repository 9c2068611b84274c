-- Messages that wait for their time; a mover brings them to the queue when they are due.
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
