-- One row when the queue already shows its bodies as text.
SELECT 1 FROM pragma_table_xinfo({queue_name}) WHERE name = 'BodyString'
