-- How far a sequence got, locked until the transaction ends. Parameter: its id.
SELECT data FROM {sequences} WHERE id = ?
