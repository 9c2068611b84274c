-- Whether the table has the shape that is used.
SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass({outbox_text}) AND attname = 'pile' AND NOT attisdropped
