-- What operators have paused: one row a name, gone when it is resumed.
IF OBJECT_ID({pauses_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {pauses} (
        [Name] nvarchar(200) NOT NULL PRIMARY KEY,
        [PausedAt] datetime2(3) NOT NULL,
        [PausedBy] nvarchar(200) NOT NULL,
        [Reason] nvarchar(1000) NOT NULL
    );
END
