-- As outbox_stage.sql, by COPY.
COPY {outbox} (claim_id, task, pile, id, milliseconds, headers, body) FROM STDIN WITH (FORMAT BINARY)
