-- Whether the table has the shape that is used.
SELECT 1 WHERE COL_LENGTH({outbox_text}, N'Pile') IS NOT NULL
