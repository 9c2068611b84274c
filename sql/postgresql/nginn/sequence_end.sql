-- A sequence is complete. Parameter: its id.
DELETE FROM {sequences} WHERE id = ?
