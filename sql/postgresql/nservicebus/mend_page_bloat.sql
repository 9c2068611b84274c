-- Writes the table anew without its empty pages. Locks the table while it runs.
VACUUM (FULL, ANALYZE) {queue};
