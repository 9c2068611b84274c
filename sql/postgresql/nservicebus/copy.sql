-- Insert messages that never expire, in the binary format of COPY: id, headers, body.
COPY {queue} (id, headers, body) FROM STDIN WITH (FORMAT BINARY)
