-- Messages that wait for their time; a mover brings them to the queue when they are due.
CREATE TABLE IF NOT EXISTS {delayed} (
    Id TEXT NOT NULL,
    Headers TEXT NOT NULL,
    Body BLOB,
    Due TEXT NOT NULL,
    RowVersion INTEGER PRIMARY KEY AUTOINCREMENT
);
CREATE INDEX IF NOT EXISTS {due_index} ON {delayed} (Due, RowVersion);
