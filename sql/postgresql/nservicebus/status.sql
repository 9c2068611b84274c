-- A queue at a glance: waiting up to a limit, expired up to a limit, the oldest message's headers, database time.
-- Parameters: limit, limit.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {queue} ORDER BY seq LIMIT ?) AS w),
    (SELECT count(*) FROM (SELECT 1 FROM {queue} WHERE expires < (clock_timestamp() AT TIME ZONE 'UTC') LIMIT ?) AS e),
    (SELECT headers FROM {queue} ORDER BY seq LIMIT 1),
    CAST(extract(EPOCH FROM clock_timestamp()) * 1000 AS bigint)
