-- Everything that is paused, with for how many milliseconds on the database's clock.
SELECT Name, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) - PausedAt, PausedBy, Reason
FROM {pauses}
ORDER BY Name
