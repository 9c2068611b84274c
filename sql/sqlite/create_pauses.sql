-- What operators have paused: one row a name, gone when it is resumed (milliseconds since 1970).
CREATE TABLE IF NOT EXISTS {pauses} (
    Name TEXT NOT NULL PRIMARY KEY,
    PausedAt INTEGER NOT NULL,
    PausedBy TEXT NOT NULL,
    Reason TEXT NOT NULL
);
