-- Keep how far a sequence got. Parameters: its state, its id.
UPDATE {sequences} SET data = ?, last_modified = strftime('%Y-%m-%d %H:%M:%f', 'now') WHERE id = ?
