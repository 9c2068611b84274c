-- What a run-time account needs on a queue.
GRANT USAGE ON SCHEMA {schema} TO {account};
GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {account};
GRANT USAGE ON SEQUENCE {sequence} TO {account};
