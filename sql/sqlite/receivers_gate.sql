-- Let one owner at a time take places of a queue; here a transaction that writes is alone anyway. Parameter: queue.
INSERT INTO {receivers} (Queue, Place, Owner, LeaseUntil)
VALUES (?1, 0, '', CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER))
ON CONFLICT (Queue, Place) DO UPDATE SET LeaseUntil = excluded.LeaseUntil
