-- Columns of a queue table and their types, for the audit. A varchar shows its limit: without one it is as good as text.
SELECT a.attname, format_type(a.atttypid, CASE WHEN a.atttypid = CAST('varchar' AS regtype) THEN a.atttypmod END)
FROM pg_attribute AS a
WHERE a.attrelid = to_regclass({queue_text}) AND a.attnum > 0 AND NOT a.attisdropped
