-- Forget the failures of a queue that works again. Parameter: queue.
DELETE FROM {failures} WHERE queue = ?
