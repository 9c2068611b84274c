-- What operators have paused: one row a name, gone when it is resumed.
CREATE TABLE IF NOT EXISTS {pauses} (
    name text NOT NULL PRIMARY KEY,
    paused_at timestamptz NOT NULL,
    paused_by text NOT NULL,
    reason text NOT NULL
);
