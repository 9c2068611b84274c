-- name: append
-- Appends rows to a user's own table. The row is repeated for several; a NULL is written as such. Locks: the new rows.
INSERT INTO {table} ({columns})
VALUES
(:row)

-- name: merge
-- Inserts rows into a user's own table, or changes those whose key exists already. Locks: the rows it writes.
INSERT INTO {table} AS stored ({columns})
VALUES
(:row)
ON CONFLICT ({keys}) DO UPDATE SET {changes}

-- name: merge_keys
-- Inserts keys that do not exist yet: a row of nothing but its key has nothing to change. Locks: the new rows.
INSERT INTO {table} ({columns})
VALUES
(:row)
ON CONFLICT ({keys}) DO NOTHING

-- name: key_index
-- The index that a merge needs, for the user's own migration; never run by this package. Locks: the table against
-- writes.
CREATE UNIQUE INDEX {index} ON {table} ({keys});
