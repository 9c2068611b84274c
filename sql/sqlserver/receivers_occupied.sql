-- The places of a queue that are not free, those above today's limit too. Their leases are not looked at: one that ran out
-- after such places were freed can still be renewed by its owner. Parameter: queue.
SELECT Place, Owner FROM {receivers} WHERE Queue = ? AND Place > 0
