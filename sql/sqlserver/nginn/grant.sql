-- What a run-time account needs on a queue.
GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {account};
GRANT VIEW DEFINITION ON {queue} TO {account};
