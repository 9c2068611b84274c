-- The body as text for people who look into the table; made by the database, never written.
ALTER TABLE {queue} ADD COLUMN IF NOT EXISTS bodystring text GENERATED ALWAYS AS (encode(body, 'escape')) STORED;
