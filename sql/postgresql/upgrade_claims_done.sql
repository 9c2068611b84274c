-- Whether the table has the columns that the first installations lack.
SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass({claims_text}) AND attname = 'last_error' AND NOT attisdropped
