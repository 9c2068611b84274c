-- One row when the table is there and visible to this account.
SELECT 1 WHERE to_regclass({queue_text}) IS NOT NULL
