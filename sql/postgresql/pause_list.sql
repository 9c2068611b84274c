-- Everything that is paused, with for how many milliseconds on the database's clock.
SELECT name, CAST(extract(EPOCH FROM clock_timestamp() - paused_at) * 1000 AS bigint), paused_by, reason
FROM {pauses}
ORDER BY name
