-- Occupy one place. Parameters: queue, place, owner, lease in milliseconds.
INSERT INTO {receivers} (Queue, Place, Owner, LeaseUntil)
VALUES (?1, ?2, ?3, CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER) + ?4)
