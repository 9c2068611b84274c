-- One failed message is ready again, as new. Parameter: its id.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE id = ? AND subqueue = 'F';
SELECT @@ROWCOUNT;
