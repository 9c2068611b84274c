-- Delete a batch of expired messages, passing over rows that a receiver holds.
DELETE FROM {queue}
WHERE RowVersion IN (
    SELECT TOP (?) RowVersion FROM {queue} WITH (READPAST) WHERE Expires < GETUTCDATE() ORDER BY Expires
);
SELECT @@ROWCOUNT;
