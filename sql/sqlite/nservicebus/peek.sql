-- How many messages wait, counted up to a limit; readers take no lock here.
SELECT count(*) FROM (SELECT 1 FROM {queue} ORDER BY RowVersion LIMIT ?)
