-- Insert rows into a table of the user's own, or change those whose key is there already.
INSERT INTO {table} AS stored ({columns})
VALUES
({marks})
ON CONFLICT ({keys}) DO UPDATE SET {changes}
