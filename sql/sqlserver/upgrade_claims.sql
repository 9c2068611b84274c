-- The columns that the first installations of this table lack.
ALTER TABLE {claims}
ADD [Begun] bit NOT NULL DEFAULT 0, [Failures] int NOT NULL DEFAULT 0, [LastError] nvarchar(2000) NULL
