-- Receivers at work: a row is a place, with room for one batch, and who has it until when (milliseconds since 1970). A
-- queue's place 0 is nobody's: on other databases, whoever takes places locks that row first.
CREATE TABLE IF NOT EXISTS {receivers} (
    Queue TEXT NOT NULL,
    Place INTEGER NOT NULL,
    Owner TEXT NOT NULL,
    LeaseUntil INTEGER NOT NULL,
    PRIMARY KEY (Queue, Place)
);
