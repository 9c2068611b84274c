-- What a run-time account needs on a table that belongs to a queue or to the transport.
GRANT USAGE ON SCHEMA {schema} TO {account};
GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {account};
