-- How far each sequence of messages got: the table of NGinn.MessageBus, one row a living sequence.
CREATE TABLE IF NOT EXISTS {sequences} (
    id TEXT NOT NULL PRIMARY KEY,
    data TEXT NOT NULL,
    last_modified TEXT NOT NULL
);
