-- The place of the newest message, whoever holds it; NULL in an empty queue. One look at the end of the index.
SELECT max(seq) FROM {queue}
