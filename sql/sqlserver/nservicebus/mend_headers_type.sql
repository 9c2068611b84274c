-- Characters that are lost already stay lost; no later one is.
ALTER TABLE {queue} ALTER COLUMN [Headers] nvarchar(max) NOT NULL;
