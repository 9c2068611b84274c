-- Keep how far a sequence got. Parameters: its state, its id.
UPDATE {sequences} SET data = ?, last_modified = (now() AT TIME ZONE 'UTC') WHERE id = ?
