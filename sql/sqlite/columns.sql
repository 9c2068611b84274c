-- Columns of a queue table and their types, for the audit. Only a lone INTEGER PRIMARY KEY is the rowid, which SQLite
-- counts up by itself; any other declaration of RowVersion stays NULL on every send.
SELECT
    c.name,
    CASE
        WHEN c.pk = 1 AND lower(c.type) = 'integer'
            AND (SELECT count(*) FROM pragma_table_xinfo({queue_name}) AS k WHERE k.pk > 0) = 1
            THEN 'integer primary key'
        ELSE c.type
    END
FROM pragma_table_xinfo({queue_name}) AS c
