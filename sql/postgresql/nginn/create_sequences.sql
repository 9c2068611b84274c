-- How far each sequence of messages got: the table of NGinn.MessageBus, one row a living sequence.
CREATE TABLE IF NOT EXISTS {sequences} (
    id varchar(100) NOT NULL PRIMARY KEY,
    data text NOT NULL,
    last_modified timestamp NOT NULL
);
