-- In-row pages of a heap and the rows in them; a table with a clustered index gives no row, as it returns its pages.
-- Pages of large values are left out: a row may well need more than ten of those.
-- Columns: pages, rows, dead rows (none here), vacuumed lately.
-- Needs VIEW DATABASE STATE, which a run-time account need not have: the caller does without.
SELECT SUM(p.in_row_used_page_count), SUM(p.row_count), 0, 0
FROM {sys}.dm_db_partition_stats AS p
WHERE p.object_id = OBJECT_ID({queue_text}, N'U') AND p.index_id = 0
HAVING COUNT(*) > 0
