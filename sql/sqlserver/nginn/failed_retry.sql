-- Failed messages are ready again, as new: all of them. Their retry time stays, as in the reference.
UPDATE {queue} SET subqueue = 'I', retry_count = 0, error_info = NULL WHERE subqueue = 'F';
SELECT @@ROWCOUNT;
