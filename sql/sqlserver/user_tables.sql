-- name: append
-- Appends rows to a user's own table. The row is repeated for several; a NULL is written as such. Locks: the new rows.
INSERT INTO {table} ({columns})
VALUES
(:row)

-- name: merge_open
-- Begins a merge: a table of the session's own with the types of the user's table. UNION ALL drops an identity.
-- Locks: none that others see.
SELECT {columns} INTO #rows FROM {table} WHERE 1 = 0
UNION ALL
SELECT {columns} FROM {table} WHERE 1 = 0

-- name: merge_fill
-- The rows to merge. Locks: none that others see.
INSERT INTO #rows ({columns})
VALUES
(:row)

-- name: merge
-- Changes the rows whose keys exist already. MERGE would do the same in one statement, but not every server has it.
-- Locks: those rows, and the ranges of the other keys, so that no other session inserts the same key before merge_keys;
-- an index on the key keeps them small.
UPDATE stored
SET {changes}
FROM {table} AS stored WITH (UPDLOCK, HOLDLOCK)
INNER JOIN #rows AS new ON {match}

-- name: merge_keys
-- Inserts the rows whose keys do not exist yet. Locks: the new rows, and the ranges of all keys.
INSERT INTO {table} ({columns})
SELECT {columns} FROM #rows AS new
WHERE NOT EXISTS (SELECT 1 FROM {table} AS stored WITH (UPDLOCK, HOLDLOCK) WHERE {match})

-- name: merge_close
-- Ends a merge. Locks: none that others see.
DROP TABLE #rows
