-- A message that cannot be read, found while it was being received: it goes from processed to failed before anybody
-- sees it. Parameters: what is wrong with it, its id.
UPDATE {queue}
SET subqueue = 'F', retry_count = retry_count + 1, retry_time = GETDATE(), error_info = ?
WHERE id = ?
