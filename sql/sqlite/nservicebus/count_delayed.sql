-- How many messages wait for their time, counted up to a limit, and the milliseconds until the next is due.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {delayed} LIMIT ?)),
    (SELECT CAST(round((julianday(min(Due)) - julianday('now')) * 86400000) AS INTEGER) FROM {delayed})
