-- A queue. As the reference creates it, but for two things that peers do not notice: seq is a bigint (theirs stops
-- for good after 2,147,483,647 messages), and expires is indexed, so that a purge does not read the whole table.
CREATE TABLE IF NOT EXISTS {queue} (
    id uuid NOT NULL PRIMARY KEY,
    expires timestamp,
    headers text NOT NULL,
    body bytea,
    seq bigserial NOT NULL UNIQUE
);
CREATE INDEX IF NOT EXISTS {expires_index} ON {queue} (expires) WHERE expires IS NOT NULL;
