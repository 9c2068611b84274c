-- name: sequence_open
-- Makes sure that a sequence has a row. Locks: the new row.
INSERT INTO {sequences} (data, id, last_modified)
SELECT CAST(:state AS text), CAST(:sequence AS text), (now() AT TIME ZONE 'UTC')
WHERE TRUE
ON CONFLICT (id) DO NOTHING

-- name: sequence_lock
-- The state of a sequence, locked until the transaction ends. Locks: the sequence's row.
SELECT data FROM {sequences} WHERE id = :sequence FOR UPDATE

-- name: sequence_save
-- Keeps the state of a sequence. Locks: the sequence's row.
UPDATE {sequences} SET data = :state, last_modified = (now() AT TIME ZONE 'UTC') WHERE id = :sequence

-- name: sequence_end
-- A sequence is complete. Locks: the sequence's row.
DELETE FROM {sequences} WHERE id = :sequence

-- name: subscription_add
-- Subscribes, or holds a subscription for longer: seconds until it expires, -1 = never. Locks: the subscription's row.
INSERT INTO {subscriptions} (publisher_endpoint, subscriber_endpoint, message_type, created_date, expiration_date)
SELECT
    m.publisher, m.subscriber, m.type, (now() AT TIME ZONE 'UTC'),
    (now() AT TIME ZONE 'UTC') + NULLIF(CAST(m.seconds AS bigint), -1) * INTERVAL '1 second'
FROM (
    SELECT
        CAST(:seconds AS bigint) AS seconds,
        CAST(:publisher AS text) AS publisher,
        CAST(:subscriber AS text) AS subscriber,
        CAST(:message_type AS text) AS type
) AS m
WHERE TRUE
ON CONFLICT (publisher_endpoint, message_type, subscriber_endpoint)
DO UPDATE SET expiration_date = excluded.expiration_date

-- name: subscription_remove
-- Ends a subscription. Locks: the subscription's row.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = :publisher AND subscriber_endpoint = :subscriber AND message_type = :message_type

-- name: subscription_expire
-- Ends a subscription whose time is over. Locks: the subscription's row.
DELETE FROM {subscriptions}
WHERE publisher_endpoint = :publisher AND subscriber_endpoint = :subscriber AND message_type = :message_type
    AND expiration_date <= (now() AT TIME ZONE 'UTC')

-- name: subscription_list
-- Every subscription at a publisher ('' = at all), with the seconds until it expires. Locks: none.
SELECT
    publisher_endpoint, subscriber_endpoint, message_type,
    CAST(extract(EPOCH FROM expiration_date - (now() AT TIME ZONE 'UTC')) AS bigint)
FROM {subscriptions}
WHERE CAST(:publisher AS text) = '' OR publisher_endpoint = CAST(:publisher AS text)
ORDER BY publisher_endpoint, message_type, subscriber_endpoint
