-- name: open
-- Runs once on every new connection. UTC: the .Delayed table of a .NET peer stores UTC wall-clock time in a
-- timestamptz, read in the session's zone. READ COMMITTED: receivers with SKIP LOCKED must see each other's commits,
-- whatever the server's default is. No bitmap scans: messages are read in the order of an index. Where statistics know
-- nothing of a batch that was claimed a moment ago, PostgreSQL would collect its rows by a bitmap and sort them on
-- disk. No parallel plans for the same reason: some statements count, or aggregate, rows in the order in which they
-- come. Time limits apply where none was chosen: neither the server's configuration, nor the role or the database, nor
-- the setting (options). lock_timeout: a table that another session locks is an error (55P03), and no hang; the tick of
-- a Dagster sensor has room for one. The server notices a client that is gone without a word after 45 s, before that
-- client gives up (60 s): when it tries again, the locks of the lost session are gone. A long statement ends when its
-- client is gone. A client that is there and does nothing inside a transaction is ended after an hour. There is no
-- statement_timeout: to claim, move or index many messages may take long. UTF8: the engine may be the caller's, and
-- speak another encoding. Locks: none.
SET TIME ZONE 'UTC';
SET client_encoding = 'UTF8';
SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED;
SET enable_bitmapscan = off;
SET max_parallel_workers_per_gather = 0;
SELECT set_config(ours.name, ours.value, false)
FROM (VALUES
    ('lock_timeout', '15s'),
    ('tcp_keepalives_idle', '30'),
    ('tcp_keepalives_interval', '5'),
    ('tcp_keepalives_count', '3'),
    ('tcp_user_timeout', '45s'),
    ('client_connection_check_interval', '10s'),
    ('idle_in_transaction_session_timeout', '1h')
) AS ours (name, value)
JOIN pg_settings ON pg_settings.name = ours.name
WHERE pg_settings.source = 'default';

-- name: encoding
-- How the database stores text; asked once per connection. Locks: none.
SELECT current_setting('server_encoding')
