-- One row when the table is there and visible to this account.
SELECT 1 WHERE OBJECT_ID({queue_text}, N'U') IS NOT NULL
