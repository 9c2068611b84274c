-- The columns that the first installations of this table lack.
ALTER TABLE {claims} ADD COLUMN Begun INTEGER NOT NULL DEFAULT 0;
ALTER TABLE {claims} ADD COLUMN Failures INTEGER NOT NULL DEFAULT 0;
ALTER TABLE {claims} ADD COLUMN LastError TEXT;
