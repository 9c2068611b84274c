-- Delete one failed message for good. Parameter: its id.
DELETE FROM {queue} WHERE id = ? AND subqueue = 'F';
SELECT @@ROWCOUNT;
