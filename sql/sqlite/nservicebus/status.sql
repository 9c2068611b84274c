-- A queue at a glance: waiting up to a limit, expired up to a limit, the oldest message's headers, database time.
-- Parameters: limit, limit.
SELECT
    (SELECT count(*) FROM (SELECT 1 FROM {queue} LIMIT ?)),
    (SELECT count(*) FROM (SELECT 1 FROM {queue} WHERE Expires < strftime('%Y-%m-%d %H:%M:%f', 'now') LIMIT ?)),
    (SELECT Headers FROM {queue} ORDER BY RowVersion LIMIT 1),
    CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)
