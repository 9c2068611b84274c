-- Change the row of a user's own table whose key is there already, or insert it. The range lock keeps others from inserting
-- the same key in between; an index on the key keeps that lock small. MERGE would do the same in one statement, but not
-- every server has it. Parameters: the changed columns, the key, all columns.
UPDATE {table} WITH (UPDLOCK, HOLDLOCK)
SET {changes}
WHERE {match};
IF @@ROWCOUNT = 0
INSERT INTO {table} ({columns}) VALUES ({marks});
