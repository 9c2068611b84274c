-- Pages of a table and estimates of the rows in them. Large values live in another relation: a row needs one page at most.
-- Columns: pages, live rows (NULL: not known), dead rows, vacuumed lately.
-- The count of live rows starts at zero after a crash of the server, and reltuples is as old as the last vacuum: what
-- reltuples says beyond the rows that died since is believed.
-- A busy queue has many dead rows until the next round of autovacuum: only those that stay are worth a word.
SELECT
    pg_relation_size(t.oid) / CAST(current_setting('block_size') AS bigint),
    CASE
        WHEN t.relpages = 0 AND coalesce(s.n_tup_ins, 0) = 0 THEN NULL
        ELSE CAST(greatest(s.n_live_tup, t.reltuples - s.n_dead_tup, 0) AS bigint)
    END,
    coalesce(s.n_dead_tup, 0),
    CASE WHEN greatest(s.last_vacuum, s.last_autovacuum) > now() - interval '10 minutes' THEN 1 ELSE 0 END
FROM pg_class AS t
LEFT JOIN pg_stat_all_tables AS s ON s.relid = t.oid
WHERE t.oid = to_regclass({queue_text})
