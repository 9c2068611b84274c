-- The body of one message of an error queue, left where it is. Parameter: seq.
SELECT body FROM {queue} WHERE seq = ?
