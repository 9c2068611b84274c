-- A queue in the layout of NGinn.MessageBus. The reference has no PostgreSQL version: columns, order and meaning are
-- those of its SQL Server table, times are in UTC. The id in the index keeps messages of one moment in the order of
-- their sending.
CREATE TABLE IF NOT EXISTS {queue} (
    id bigserial NOT NULL PRIMARY KEY,
    from_endpoint varchar(50) NOT NULL,
    to_endpoint varchar(50) NOT NULL,
    subqueue char(1) NOT NULL,
    insert_time timestamp NOT NULL,
    last_processed timestamp,
    retry_count integer NOT NULL,
    retry_time timestamp NOT NULL,
    error_info text,
    correlation_id varchar(100),
    label varchar(100),
    msg_text text,
    msg_headers text,
    unique_id varchar(40)
);
CREATE INDEX IF NOT EXISTS {subqueue_index} ON {queue} (subqueue, retry_time, id);
