-- One row when the queue already shows its bodies as text.
SELECT 1 WHERE COL_LENGTH({queue_text}, N'BodyString') IS NOT NULL
