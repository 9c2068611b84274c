-- Insert messages that never expire, by COPY: less than half the processor time of send.sql.
COPY {queue} (id, headers, body) FROM STDIN WITH (FORMAT BINARY)
