-- Insert keys that are not there yet: a row of nothing but its key has nothing to change.
INSERT INTO {table} ({columns})
VALUES
({marks})
ON CONFLICT ({keys}) DO NOTHING
