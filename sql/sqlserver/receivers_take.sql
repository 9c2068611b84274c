-- Occupy one place. Parameters: queue, place, owner, lease in milliseconds.
INSERT INTO {receivers} (Queue, Place, Owner, LeaseUntil)
VALUES (?, ?, ?, DATEADD(millisecond, CAST(? AS int), SYSUTCDATETIME()))
