-- Whether the table has the shape that is used.
SELECT 1 FROM pragma_table_info({outbox_name}) WHERE name = 'Pile'
