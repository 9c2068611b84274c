-- One row when the queue already shows its bodies as text.
SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass({queue_text}) AND attname = 'bodystring' AND NOT attisdropped
