-- Make a waiting message ready: its turn in its sequence has come. Parameter: its id.
UPDATE {queue} SET subqueue = 'I' WHERE id = ? AND subqueue = 'R'
