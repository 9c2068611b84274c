-- Run once on every new connection.
-- UTC: the .Delayed table of a .NET peer stores UTC wall-clock time in a timestamptz, read in the session's zone.
-- READ COMMITTED: SKIP LOCKED receivers must see each other's commits, whatever the server's default is.
SET TIME ZONE 'UTC';
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
