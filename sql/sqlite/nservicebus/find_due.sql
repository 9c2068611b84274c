-- The head of the delayed messages that are due, with the headers of those that may be for another queue: all but the
-- ones that carry the forwarding header exactly as this transport writes it for the queue itself.
-- Parameters: that header with its value, how many.
SELECT RowVersion, CASE WHEN instr(Headers, ?) = 0 THEN Headers END
FROM {delayed}
WHERE Due <= strftime('%Y-%m-%d %H:%M:%f', 'now')
ORDER BY Due, RowVersion
LIMIT ?
