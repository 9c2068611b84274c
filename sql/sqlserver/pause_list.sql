-- Everything that is paused, with for how many milliseconds on the database's clock.
SELECT Name, DATEDIFF_BIG(millisecond, PausedAt, SYSUTCDATETIME()), PausedBy, Reason
FROM {pauses}
ORDER BY Name
