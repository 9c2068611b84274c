-- Free the places of a queue whose lease ran out. An owner that renews at this moment keeps its place: the row is looked at
-- again once its lock is free. Parameter: queue.
DELETE FROM {receivers} WHERE queue = ? AND place > 0 AND lease_until <= clock_timestamp()
