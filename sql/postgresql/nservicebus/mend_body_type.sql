-- Text becomes its UTF-8 bytes; a cast to bytea would read backslashes as escapes. Rewrites the table under a lock.
ALTER TABLE {queue} ALTER COLUMN body TYPE bytea USING convert_to(CAST(body AS text), 'UTF8');
