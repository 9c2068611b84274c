-- Make sure that a sequence has a row, and lock it. Parameters: its state if it is new, its id.
DECLARE @data varchar(max) = ?, @id varchar(100) = ?;
INSERT INTO {sequences} (id, data, last_modified)
SELECT @id, @data, GETDATE()
WHERE NOT EXISTS (SELECT 1 FROM {sequences} WITH (UPDLOCK, HOLDLOCK) WHERE id = @id);
SELECT data FROM {sequences} WITH (UPDLOCK, ROWLOCK) WHERE id = @id;
