-- What a run-time account needs on a table that belongs to a queue or to the transport.
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {account};
GRANT VIEW DEFINITION ON {table} TO {account};
