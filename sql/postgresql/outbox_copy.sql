-- As outbox_stage.sql, for messages that never expire, in the binary format of COPY.
COPY {outbox} (claim_id, task, pile, id, milliseconds, headers, body) FROM STDIN WITH (FORMAT BINARY)
