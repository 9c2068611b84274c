-- Receivers at work: a row is a place, with room for one batch, and who has it until when. A queue's place 0 is nobody's:
-- whoever takes places locks that row first, so that they are counted by one at a time.
CREATE TABLE IF NOT EXISTS {receivers} (
    queue text NOT NULL,
    place integer NOT NULL,
    owner text NOT NULL,
    lease_until timestamptz NOT NULL,
    PRIMARY KEY (queue, place)
);
