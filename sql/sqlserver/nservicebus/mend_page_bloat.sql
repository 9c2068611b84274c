-- Gives the empty pages of a heap back. Locks the table while it runs.
ALTER TABLE {queue} REBUILD;
