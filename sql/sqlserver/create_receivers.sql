-- Receivers at work: a row is a place, with room for one batch, and who has it until when. A queue's place 0 is nobody's:
-- whoever takes places locks that row first, so that they are counted by one at a time.
IF OBJECT_ID({receivers_text}, N'U') IS NULL
BEGIN
    CREATE TABLE {receivers} (
        [Queue] nvarchar(400) NOT NULL,
        [Place] int NOT NULL,
        [Owner] nvarchar(200) NOT NULL,
        [LeaseUntil] datetime2(3) NOT NULL,
        PRIMARY KEY ([Queue], [Place])
    );
END
