-- The columns that the first installations of this table lack.
ALTER TABLE {claims} ADD [Failures] int NOT NULL DEFAULT 0, [LastError] nvarchar(2000) NULL
