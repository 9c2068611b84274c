-- How far an error queue goes now: what fails later has a higher RowVersion.
SELECT MAX(RowVersion) FROM {queue} WITH (READPAST, READCOMMITTEDLOCK)
