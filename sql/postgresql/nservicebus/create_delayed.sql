-- Messages that wait for their time; a mover brings them to the queue when they are due.
CREATE TABLE IF NOT EXISTS {delayed} (
    id uuid NOT NULL PRIMARY KEY DEFAULT gen_random_uuid(),
    headers text NOT NULL,
    body bytea,
    due timestamptz NOT NULL
) WITH (fillfactor = 100);
CREATE INDEX IF NOT EXISTS {due_index} ON {delayed} (due);
