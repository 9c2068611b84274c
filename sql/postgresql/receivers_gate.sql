-- Let one owner at a time take places of a queue, until the end of its transaction: two who count at once would both find
-- the last place free. Renewing, releasing and claiming do not wait for it. Parameter: queue.
INSERT INTO {receivers} (queue, place, owner, lease_until)
VALUES (?, 0, '', clock_timestamp())
ON CONFLICT (queue, place) DO UPDATE SET lease_until = excluded.lease_until
