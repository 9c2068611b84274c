-- The head of the delayed messages that are due, locked, with the headers of those that may be for another queue: all
-- but the ones that carry the forwarding header exactly as this transport writes it for the queue itself.
-- Compared as bytes: quicker, and `Orders` is not `orders` whatever the column's collation says.
-- Parameters: that header with its value, how many.
SELECT h.RowVersion, CASE WHEN CHARINDEX(?, h.Headers COLLATE Latin1_General_BIN2) > 0 THEN NULL ELSE h.Headers END
FROM (
    SELECT TOP (?) RowVersion, Headers, Due
    FROM {delayed} WITH (UPDLOCK, READPAST, ROWLOCK)
    WHERE Due <= GETUTCDATE()
    ORDER BY Due, RowVersion
) AS h
ORDER BY h.Due, h.RowVersion
