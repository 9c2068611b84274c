-- SQLite alters no column: a new table takes the messages over. The write lock keeps senders out between copy and drop.
-- A NULL RowVersion is counted up after the others. Columns that are no queue's, such as BodyString, are not kept.
BEGIN IMMEDIATE;
CREATE TABLE {replacement} (
    Id TEXT NOT NULL,
    Expires TEXT,
    Headers TEXT NOT NULL,
    Body BLOB,
    RowVersion INTEGER PRIMARY KEY AUTOINCREMENT
);
INSERT INTO {replacement} (Id, Expires, Headers, Body, RowVersion)
SELECT Id, Expires, Headers, Body, RowVersion FROM {queue} ORDER BY RowVersion IS NULL, RowVersion, rowid;
DROP TABLE {queue};
ALTER TABLE {replacement} RENAME TO {queue};
CREATE INDEX {expires_index} ON {queue} (Expires) WHERE Expires IS NOT NULL;
COMMIT;
