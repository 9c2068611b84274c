-- How far an error queue goes now: what fails later has a higher seq.
SELECT max(seq) FROM {queue}
