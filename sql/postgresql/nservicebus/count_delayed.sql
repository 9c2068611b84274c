-- How many messages wait for their time, counted up to a limit, and the milliseconds until the next is due.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {delayed} LIMIT ?) AS d),
    (SELECT CAST(ceil(extract(EPOCH FROM min(due) - clock_timestamp()) * 1000) AS bigint) FROM {delayed})
