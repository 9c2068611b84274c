-- The body as text for people who look into the table; made by the database, never written.
ALTER TABLE {queue} ADD COLUMN BodyString TEXT GENERATED ALWAYS AS (CAST(Body AS TEXT)) VIRTUAL;
