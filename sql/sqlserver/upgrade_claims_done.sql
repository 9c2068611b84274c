-- Whether the table has the columns that the first installations lack.
SELECT 1 WHERE COL_LENGTH({claims_text}, N'LastError') IS NOT NULL
