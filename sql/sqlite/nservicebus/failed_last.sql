-- How far an error queue goes now: what fails later has a higher RowVersion.
SELECT max(RowVersion) FROM {queue}
