-- name: open
-- Runs once on every new connection. UTC: the .Delayed table of a .NET peer stores UTC wall-clock time in a
-- timestamptz, read in the session's zone. READ COMMITTED: receivers with SKIP LOCKED must see each other's commits,
-- whatever the server's default is. No bitmap scans: messages are read in the order of an index. Where statistics know
-- nothing of a batch that was claimed a moment ago, PostgreSQL would collect its rows by a bitmap and sort them on
-- disk. No parallel plans for the same reason: some statements count, or aggregate, rows in the order in which they
-- come. Locks: none.
SET TIME ZONE 'UTC';
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
