-- Append rows to a table of the user's own. The marks of a row are repeated for several rows; a NULL is written among them.
INSERT INTO {table} ({columns})
VALUES
({marks})
