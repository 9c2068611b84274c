-- name: create_queue
-- A queue in the layout of NGinn.MessageBus. The reference has no PostgreSQL version: columns, order and meaning are
-- those of its SQL Server table, times are in UTC. The id in the index keeps messages of one moment in the order of
-- their sending. Locks: the new table.
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

-- name: create_claimed
-- Which messages belong to batches in work. The messages themselves stay in the queue, in subqueue R, with the end of
-- the lease as their retry time: any other reader of the queue returns them when the lease is over. While retry_time
-- equals the lease stored here, a message belongs to its claim. Locks: the new table.
CREATE TABLE IF NOT EXISTS {claimed} (
    claim_id uuid NOT NULL,
    id bigint NOT NULL,
    bytes bigint NOT NULL,
    due timestamp NOT NULL,
    lease timestamp NOT NULL,
    PRIMARY KEY (claim_id, id)
);
CREATE INDEX IF NOT EXISTS {claimed_index} ON {claimed} (id);

-- name: create_sequences
-- The state of each sequence of messages: the table of NGinn.MessageBus, one row per living sequence. Locks: the new
-- table.
CREATE TABLE IF NOT EXISTS {sequences} (
    id varchar(100) NOT NULL PRIMARY KEY,
    data text NOT NULL,
    last_modified timestamp NOT NULL
);

-- name: create_subscriptions
-- Who subscribed to what at which publisher: the table of NGinn.MessageBus, shared by all buses of a database. Locks:
-- the new table.
CREATE TABLE IF NOT EXISTS {subscriptions} (
    publisher_endpoint varchar(200) NOT NULL,
    subscriber_endpoint varchar(200) NOT NULL,
    message_type varchar(300) NOT NULL,
    created_date timestamp NOT NULL,
    expiration_date timestamp,
    PRIMARY KEY (publisher_endpoint, message_type, subscriber_endpoint)
);

-- name: grant
-- The rights that a run-time account needs on a queue. Locks: the catalog only.
GRANT USAGE ON SCHEMA {schema} TO {account};
GRANT SELECT, INSERT, UPDATE, DELETE ON {queue} TO {account};
GRANT USAGE ON SEQUENCE {id_sequence} TO {account};
