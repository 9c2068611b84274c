-- Delete a batch of expired messages.
DELETE FROM {queue}
WHERE RowVersion IN (
    SELECT RowVersion FROM {queue} WHERE Expires < strftime('%Y-%m-%d %H:%M:%f', 'now') ORDER BY Expires LIMIT ?
)
