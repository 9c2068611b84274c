-- A constraint rather than a bare index: claims rely on seq being unique. Blocks senders while it is built.
ALTER TABLE {queue} ADD CONSTRAINT {index} UNIQUE (seq);
