-- Insert a key that is not there yet: a row of nothing but its key has nothing to change.
-- Parameters: the key, all columns.
IF NOT EXISTS (SELECT 1 FROM {table} WITH (UPDLOCK, HOLDLOCK) WHERE {match})
INSERT INTO {table} ({columns}) VALUES ({marks});
