-- Whether the table has the columns that the first installations lack.
SELECT 1 FROM pragma_table_info({claims_name}) WHERE name = 'LastError'
