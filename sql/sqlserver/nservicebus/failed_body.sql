-- The body of one message of an error queue, left where it is. Parameter: RowVersion.
SELECT Body FROM {queue} WITH (READPAST, READCOMMITTEDLOCK) WHERE RowVersion = ?
